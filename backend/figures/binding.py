"""How a figure's template takes up data. The dashboard implements the same contract in TypeScript; both are tested
against contract/figure_binding_cases.json.

A template is Plotly JSON. A trace that shows data carries `meta`; a trace without `meta` is left as it is. In meta:

- `series`: name of the series to show. Always there.
- `field`: which column of the series becomes y: `value` (default), `min` or `max`.
- `times_series`: name of another series whose value at the same step is multiplied in; a step that it lacks is left
  out.
- `power`, `factor`, `offset`: y = factor * (column ** power * other) + offset; by default 1, 1 and 0.
- `is_main`: false on bands, envelopes and reference lines, which are dropped when several runs are compared.

Binding sets `x` to the series' steps and `y` to the transformed column; null stays null, and a result that is not
finite becomes null. A trace with no point gets x = y = [] and `visible: false`; any other `visible: true`. Nothing else
in a trace or in the layout changes, so that zoom and legend survive (`layout.uirevision` is constant).

Several runs: the main traces are repeated for each run, in the order trace by trace; `name` becomes
`<run> · <trace name>`, the run's colour from the palette's `runs` (in turn) replaces `line.color` and `marker.color`
where the trace sets them, `legendgroup` becomes the run's label, and `offsetgroup` too on bars.
`layout.meta` = {"empty": "..."} says what to show in words while no trace has a point.
"""
