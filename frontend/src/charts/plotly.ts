import bar from "plotly.js/lib/bar";
import Plotly from "plotly.js/lib/core";

// scatter is part of the core; of the other forty traces the figures use only bars.
Plotly.register([bar]);

export { Plotly };
