// Mouse, keys and search.

const under = byId("under");

// local returns a pointer's position in the units of a drawing.
function local(svg, e) {
  const box = svg.getBoundingClientRect();
  return { x: (e.clientX - box.left) * view.width / box.width, y: (e.clientY - box.top) * view.width / box.width };
}

const stepAt = (x) => Math.min(Math.max(Math.floor(timeAt(x) / 2), 0), steps.length - 1);

function hover(e) {
  const shape = e.target.closest?.("[data-value],[data-scratch]");
  if (!shape) { under.hidden = true; return; }
  if (shape.dataset.value !== undefined) {
    const v = byID.get(Number(shape.dataset.value));
    under.replaceChildren(element("b", {}, v.name), ...factsOf(v).map((line) => element("div", {}, line)));
  } else {
    const k = Number(shape.dataset.scratch);
    under.replaceChildren(element("b", {}, "scratch"), element("div", {}, stepText(k)), element("div", {}, `${formatBytes(steps[k].scratch)} × ${plural(plan.threads, "thread")}`));
  }
  under.hidden = false;
  under.style.left = Math.max(0, Math.min(e.clientX + 14, innerWidth - under.offsetWidth - 8)) + "px";
  under.style.top = Math.max(0, e.clientY + 18 + under.offsetHeight > innerHeight ? e.clientY - under.offsetHeight - 10 : e.clientY + 18) + "px";
}

let drag = null;
plot.addEventListener("pointerdown", (e) => {
  if (e.button !== 0) return;
  if (local(plot, e).x > view.width - marginRight + 4) {
    const move = (e) => { gaugeTo(local(plot, e).y); redraw(); };
    move(e);
    plot.setPointerCapture(e.pointerId);
    plot.addEventListener("pointermove", move);
    plot.addEventListener("pointerup", () => plot.removeEventListener("pointermove", move), { once: true });
    return;
  }
  drag = { from: local(plot, e), last: local(plot, e), target: e.target, box: e.shiftKey, moved: false };
  plot.setPointerCapture(e.pointerId);
});
plot.addEventListener("pointermove", (e) => {
  if (!drag) return e.buttons === 0 && hover(e);
  const p = local(plot, e);
  drag.moved ||= Math.hypot(p.x - drag.from.x, p.y - drag.from.y) > 4;
  if (!drag.moved) return;
  under.hidden = true;
  if (drag.box) {
    drawMarks(chosen);
    svgElement("rect", { ...boxOf(drag.from, p), class: "window" }, layers.marks);
  } else {
    const dt = timeAt(drag.last.x) - timeAt(p.x);
    setTime(view.from + dt, view.to + dt);
    setBytes(view.scale, view.bottom + p.y - drag.last.y);
    redraw();
  }
  drag.last = p;
});
plot.addEventListener("pointerup", (e) => {
  const d = drag, p = local(plot, e);
  drag = null;
  if (!d) return;
  if (d.moved && d.box) return zoomInto(boxOf(d.from, p));
  if (d.moved || steps.length === 0) return;
  const shape = d.target.closest?.("[data-value]");
  const value = shape ? byID.get(Number(shape.dataset.value)) : null;
  if (p.x < gutter) return;
  choose({ step: stepAt(p.x), value });
});
plot.addEventListener("pointercancel", () => { drag = null; });
plot.addEventListener("pointerleave", () => { under.hidden = true; });
plot.addEventListener("dblclick", (e) => zoomTime(0.4, local(plot, e).x));

const boxOf = (a, b) => ({ x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) });

function zoomInto(box) {
  const from = timeAt(box.x), to = timeAt(box.x + box.width), middle = box.y + box.height / 2;
  if (box.height > 8) {
    const factor = box.height / plotHeight();
    zoomBytes(factor, middle);
    setBytes(view.scale, view.bottom + topMargin + plotHeight() / 2 - middle);
  }
  setTime(from, to);
  redraw();
}

plot.addEventListener("wheel", (e) => {
  const p = local(plot, e), sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY);
  if (e.ctrlKey || e.metaKey) {
    const factor = Math.exp(Math.max(-1, Math.min(1, (e.deltaY || e.deltaX) / 240)));
    e.shiftKey ? zoomBytes(factor, p.y) : zoomTime(factor, p.x);
  } else if (sideways || e.shiftKey) {
    const dt = (view.to - view.from) * (sideways ? e.deltaX : e.deltaY) / plotWidth();
    setTime(view.from + dt, view.to + dt);
    redraw();
  } else return; // the page scrolls
  e.preventDefault();
}, { passive: false });

const keys = {
  ArrowLeft: (e) => move(e.shiftKey ? -10 : -1), ArrowRight: (e) => move(e.shiftKey ? 10 : 1),
  ArrowUp: () => { setBytes(view.scale, view.bottom + 60); redraw(); }, ArrowDown: () => { setBytes(view.scale, view.bottom - 60); redraw(); },
  Home: () => choose({ step: 0 }), End: () => choose({ step: steps.length - 1 }),
  PageUp: () => { const d = (view.to - view.from) * 0.8; setTime(view.from - d, view.to - d); redraw(); },
  PageDown: () => { const d = (view.to - view.from) * 0.8; setTime(view.from + d, view.to + d); redraw(); },
  "+": () => zoomTime(0.6, aim()), "=": () => zoomTime(0.6, aim()), "-": () => zoomTime(1 / 0.6, aim()), "]": () => zoomBytes(0.7), "[": () => zoomBytes(1 / 0.7),
  p: () => choose({ step: plan.peak.step }), 0: () => { start(); redraw(); },
};

// aim is where keys zoom in: the chosen step, if it is in view.
function aim() {
  const x = chosen.step >= 0 ? xOf(2 * chosen.step + 1) : -1;
  return x > gutter && x < view.width ? x : gutter + plotWidth() / 2;
}

plot.addEventListener("keydown", (e) => {
  const key = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (!key || e.ctrlKey || e.metaKey || e.altKey || steps.length === 0) return;
  key(e);
  e.preventDefault();
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName)) {
    byId("search").focus();
    e.preventDefault();
  }
  if (e.key === "Escape") clear();
});

function clear() {
  byId("search").value = "";
  find("");
  [chosen.step, chosen.value] = [-1, null];
  showChosen();
}

overview.addEventListener("pointerdown", (e) => {
  const at = (e) => Math.min(Math.max((local(overview, e).x - gutter) / plotWidth(), 0), 1) * lastTime;
  const from = at(e);
  overview.setPointerCapture(e.pointerId);
  let to = from;
  overview.onpointermove = (e) => {
    to = at(e);
    if (Math.abs(to - from) > lastTime / 200) { setTime(Math.min(from, to), Math.max(from, to)); redraw(); }
  };
  overview.onpointerup = () => {
    overview.onpointermove = overview.onpointerup = null;
    if (Math.abs(to - from) <= lastTime / 200 && steps.length > 0) choose({ step: Math.min(Math.floor(from / 2), steps.length - 1) });
  };
});

// find looks for a text in the names and types of values and in the operators and nodes of steps; a number finds its step.
function find(text) {
  search.text = text.trim().toLowerCase();
  search.at = -1;
  search.found = [];
  if (search.text !== "") {
    const has = (...texts) => texts.some((t) => t.toLowerCase().includes(search.text));
    const number = /^\d+$/.test(search.text) ? Number(search.text) : -1;
    if (number >= 0 && number < steps.length) search.found.push({ step: number });
    for (const v of values) if (has(v.name, v.type)) search.found.push({ value: v });
    steps.forEach((s, k) => { if (k !== number && has(s.op, s.node)) search.found.push({ step: k }); });
  }
  const n = search.found.length, most = 100;
  byId("matches").textContent = search.text === "" ? "" : n === 0 ? "nothing" : plural(n, "match").replace("matchs", "matches");
  const list = byId("found");
  list.replaceChildren(...search.found.slice(0, most).map((f, i) => {
    const item = f.value ? valueLink(f.value) : stepLink(f.step);
    item.addEventListener("click", () => { search.at = i; });
    return element("li", {}, item, f.value ? element("small", {}, ` ${f.value.type}${f.value.writer >= 0 ? ", " + lifeText(f.value) : ""}`) : "");
  }), ...(n > most ? [element("li", {}, `and ${n - most} more`)] : []));
  list.hidden = n === 0;
  dim();
  drawLabels();
}

byId("search").addEventListener("input", (e) => find(e.target.value));
byId("search").addEventListener("keydown", (e) => {
  const n = search.found.length;
  if (e.key !== "Enter" || n === 0) return;
  search.at = (search.at + (e.shiftKey ? n - 1 : 1) + (search.at < 0 && e.shiftKey ? 1 : 0)) % n;
  const f = search.found[search.at];
  choose(f.value ? { value: f.value } : { step: f.step });
  byId("matches").textContent = `${search.at + 1} of ${n}`;
  e.preventDefault();
});
