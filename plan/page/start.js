// The beginning: everything is drawn once, and the buttons are bound.

byId("app").hidden = false;
measure();
view.height = Math.min(760, Math.max(460, Math.floor(innerHeight * 0.6)));
measure();
drawSummary();
drawLists(byId("lists"));
start();
draw();
showChosen();
for (const [id, fitView] of Object.entries(fits)) byId(id).addEventListener("click", () => { fitView(); redraw(); });
byId("time-in").addEventListener("click", () => zoomTime(0.6, aim()));
byId("time-out").addEventListener("click", () => zoomTime(1 / 0.6, aim()));
byId("bytes-in").addEventListener("click", () => zoomBytes(0.7));
byId("bytes-out").addEventListener("click", () => zoomBytes(1 / 0.7));
new ResizeObserver(() => {
  if (Math.max(560, Math.floor(plot.parentElement.clientWidth)) === view.width) return;
  measure();
  redraw();
}).observe(plot.parentElement);
