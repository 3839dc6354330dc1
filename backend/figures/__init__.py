"""The charts. Each is defined once here, as a Plotly template whose traces name the series that they show."""
