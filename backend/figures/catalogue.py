"""Every chart, in the order of the dashboard. Importing this imports plotly."""

from backend.figures.charts_exactness import exactness
from backend.figures.charts_hardware import hardware
from backend.figures.charts_learning import learning, policy_health
from backend.figures.charts_speculation import speculation
from backend.figures.charts_speed import set_up, speed
from backend.figures.elements import Chart

CHARTS: dict[str, Chart] = {
    chart.name: chart
    for chart in [*learning(), *speculation(), *speed(), *exactness(), *policy_health(), *hardware(), *set_up()]
}
