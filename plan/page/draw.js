// The drawing: steps across, bytes up, all spaces at one scale. Shapes are made once and moved when the view changes.

const svgSpace = "http://www.w3.org/2000/svg";

function svgElement(name, attributes, parent, text) {
  const e = document.createElementNS(svgSpace, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent?.append(e);
  return e;
}

const plot = document.getElementById("plot");
const gutter = 112, marginRight = 52, axisHeight = 46, bandGap = 16, topMargin = 18;

// bands are the spaces from the bottom up. Each has its bytes, in the document's sums.
function makeBands() {
  const io = (space) => {
    const ends = new Map();
    for (const v of values) if (v.space === space) ends.set(v.arg, Math.max(ends.get(v.arg) ?? 0, v.offset + v.extent));
    let sum = 0;
    const starts = new Map();
    for (const [arg, size] of [...ends].sort((a, b) => a[0] - b[0])) { starts.set(arg, sum); sum += size; }
    return { starts, bytes: sum };
  };
  const inputs = io("input"), outputs = io("output");
  const list = [
    { name: "arena", space: "arena", bytes: plan.arena_bytes },
    { name: "scratch", space: "scratch", bytes: plan.scratch_bytes },
    { name: "inputs", space: "input", bytes: inputs.bytes, starts: inputs.starts },
    { name: "outputs", space: "output", bytes: outputs.bytes, starts: outputs.starts },
  ];
  const unknown = values.filter((v) => v.space === "own");
  if (unknown.length > 0) {
    // They have no size, and so a height that is not to scale.
    const each = Math.max(64, Math.ceil((plan.arena_bytes + plan.io_bytes) / 50));
    list.push({ name: "size unknown", space: "own", bytes: each * unknown.length, each, notToScale: true });
  }
  list.push({ name: "weights", space: "weight", bytes: plan.weight_bytes });
  return list.filter((b) => b.bytes > 0 || b.space === "arena");
}
const bands = makeBands();
const bandOf = (space) => bands.find((b) => b.space === (space === "constant" ? "weight" : space));

// placeShapes gives every value its bytes [low, high) in its band.
function placeShapes() {
  let weight = 0, unknown = 0;
  const own = bandOf("own");
  for (const v of values) {
    v.band = bandOf(v.space);
    v.low = v.offset;
    if (v.space === "input" || v.space === "output") v.low += v.band?.starts.get(v.arg) ?? 0;
    if (v.space === "own") v.low = own.each * unknown++;
    const stack = v.space === "slot" ? byID.get(v.arg) : undefined; // drawn where its first part is
    if (stack && stack.space !== "own") [v.band, v.low] = [stack.band, stack.low + v.offset];
    v.high = v.low + (v.space === "own" ? own.each : v.extent);
    if (v.space !== "weight" && v.space !== "constant") continue;
    if (v.writer < 0) {
      [v.low, v.high] = [weight, weight + v.held];
      weight += v.held;
      continue;
    }
    let root = v;
    for (let i = 0; root?.inPlace && i < values.length; i++) root = byName.get(root.inPlace.of)?.[0];
    const base = root?.low ?? 0;
    [v.low, v.high] = [base + v.offset, base + Math.min(v.offset + v.extent, Math.max(root?.held ?? 0, v.offset + 1))];
  }
}
placeShapes();

const view = { width: 900, height: 460, from: 0, to: lastTime, scale: 1, bottom: 0 }; // half-steps; pixels per byte; pixels below the frame
const plotWidth = () => view.width - gutter - marginRight;
const plotHeight = () => view.height - axisHeight - topMargin;
const xOf = (t) => gutter + plotWidth() * (t - view.from) / (view.to - view.from);
const timeAt = (x) => view.from + (view.to - view.from) * (x - gutter) / plotWidth();
const baseOf = (band) => {
  let y = 0;
  for (const b of bands) {
    if (b === band) return y;
    y += b.bytes * view.scale + bandGap;
  }
  return y;
};
const yOf = (band, bytes) => topMargin + plotHeight() + view.bottom - baseOf(band) - bytes * view.scale;
const heightOf = (list) => list.reduce((h, b) => h + b.bytes * view.scale + bandGap, -bandGap);

const layers = {};
const clip = svgElement("clipPath", { id: "frame" }, svgElement("defs", {}, plot));
const frame = svgElement("rect", { x: gutter, y: topMargin }, clip);
for (const name of ["ground", "shapes", "marks", "labels", "axis", "gauge", "flags"]) layers[name] = svgElement("g", { class: name }, plot);
for (const name of ["shapes", "marks", "labels"]) layers[name].setAttribute("clip-path", "url(#frame)");

// drawn are the shapes in their order: long lives and large values first, so that what lies inside them is above them.
const drawn = values.filter((v) => v.band && v.end > v.start).sort((a, b) => (b.high - b.low) - (a.high - a.low) || (b.end - b.start) - (a.end - a.start) || a.index - b.index);
for (const v of drawn) v.shape = svgElement("rect", { class: "v " + kindOf(v), "data-value": v.id }, layers.shapes);
const scratchShapes = [];
steps.forEach((s, k) => {
  if (s.scratch > 0) scratchShapes.push({ k, bytes: s.scratch * plan.threads, shape: svgElement("rect", { class: "v scratch", "data-scratch": k }, layers.shapes) });
});

// setRect moves a shape, or hides it where it is outside the frame. What is thin stays large enough to be seen.
function setRect(shape, t0, t1, band, low, high) {
  const x0 = Math.max(xOf(t0), gutter - 2), x1 = Math.min(xOf(t1), view.width - marginRight + 2);
  const y1 = Math.min(yOf(band, low), view.height - axisHeight + 2), y0 = Math.max(yOf(band, high), topMargin - 2);
  const width = Math.max(x1 - x0, 0.8), height = Math.max(y1 - y0, 2);
  const visible = x1 > gutter && x0 < view.width - marginRight && y1 > topMargin && y0 < view.height - axisHeight && x1 >= x0 && y1 >= y0;
  shape.style.display = visible ? "" : "none";
  if (!visible) return null;
  const box = { x: x0, y: y1 - height, width, height };
  for (const k in box) shape.setAttribute(k, box[k].toFixed(2));
  shape.classList.toggle("thin", width < 4 || height < 4);
  return box;
}

function drawGround() {
  layers.ground.replaceChildren();
  const top = topMargin, bottom = view.height - axisHeight, width = plotWidth();
  for (const b of bands) {
    const low = yOf(b, 0), high = yOf(b, b.bytes);
    if (high > bottom || low < top) continue;
    const y0 = Math.max(high, top), y1 = Math.min(low, bottom);
    svgElement("rect", { x: gutter, y: y0, width, height: Math.max(y1 - y0, 1), class: "ground" }, layers.ground);
    if (!b.notToScale) drawTicks(b, y0, y1);
    // A band that is cut off keeps its name in view.
    const y = Math.min(Math.max(high + 10, top + 9), bottom - 2);
    svgElement("text", { x: 4, y, class: "band" }, layers.ground, b.name);
    if (y1 - y0 > 20 || b.notToScale) svgElement("text", { x: 4, y: y + 13 }, layers.ground, b.notToScale ? "not to scale" : formatBytes(b.bytes));
  }
  const hidden = (out) => bands.filter(out).map((b) => `${b.name} ${formatBytes(b.bytes)}`).join(", ");
  const above = hidden((b) => yOf(b, 0) < top), below = hidden((b) => yOf(b, b.bytes) > bottom);
  if (above) svgElement("text", { x: gutter, y: 12, class: "away" }, layers.ground, `↑ above: ${above}`);
  if (below) svgElement("text", { x: gutter + width, y: 12, class: "away right" }, layers.ground, `↓ below: ${below}`);
}

// drawTicks writes round byte counts at the left of a band, as many as there is place for.
function drawTicks(b, y0, y1) {
  let every = 64;
  while (every * view.scale < 44) every *= 2;
  for (let n = 0; n <= b.bytes; n += every) {
    if (n * view.scale > 1e7) break;
    const y = yOf(b, n);
    if (y < y0 - 0.5) break;
    if (y > y1 + 0.5) continue;
    svgElement("path", { d: `M${gutter} ${y.toFixed(1)}h${plotWidth()}`, class: "grid" }, layers.ground);
    if (y - y0 > 30 || n === 0 && y - y0 > 26) svgElement("text", { x: gutter - 6, y: y + (n === 0 ? 0 : 4), class: "right" }, layers.ground, formatBytes(n));
  }
}

function drawShapes() {
  for (const v of drawn) v.box = setRect(v.shape, v.start, v.end, v.band, v.low, v.high);
  const band = bandOf("scratch");
  for (const s of scratchShapes) setRect(s.shape, 2 * s.k, 2 * s.k + 2, band, 0, s.bytes);
}

const pen = document.createElement("canvas").getContext("2d");
pen.font = "11px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif";
const widths = new Map();
function widthOf(text) {
  if (!widths.has(text)) widths.set(text, pen.measureText(text).width);
  return widths.get(text);
}

// endings are the ends that many names have in common, such as "_output_0": a label does without them first.
function commonEndings() {
  const count = new Map(), least = Math.max(4, values.length / 5);
  for (const v of values) {
    for (let i = 1; i < v.name.length; i++) if (/[/.:_]/.test(v.name[i])) count.set(v.name.slice(i), (count.get(v.name.slice(i)) ?? 0) + 1);
  }
  return [...count].filter(([, n]) => n >= least).map(([ending]) => ending).sort((a, b) => b.length - a.length);
}
const endings = commonEndings();

// fit shortens a name to a width: without a common ending, then without parts of its path from the front, where names of one
// model are alike, then without the middle of the last part. It is empty where what is left would not tell one value from another.
function fit(name, width) {
  if (widthOf(name) <= width) return name;
  const ending = endings.find((e) => name.endsWith(e));
  const stem = ending ? name.slice(0, -ending.length) : name;
  if (ending && widthOf(stem + "…") <= width) return stem + "…";
  for (let i = 1; stem.length - i > 3; i++) {
    const part = "…" + stem.slice(stem[i] === "/" ? i : i + 1);
    if (/[/.:]/.test(stem[i]) && widthOf(part) <= width) return part;
  }
  const last = stem.slice(stem.search(/[^/.:]*$/));
  for (let keep = last.length - 1; keep >= 5; keep--) {
    const part = last.slice(0, Math.ceil(keep / 2)) + "…" + last.slice(last.length - Math.floor(keep / 2));
    if (widthOf(part) <= width) return part;
  }
  return "";
}

const overlap = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

// drawLabels names the shapes in which a name can be read, upright where they are wide and upwards where they are tall. A name
// is left out where what is drawn above its shape would hide it.
function drawLabels() {
  layers.labels.replaceChildren();
  const shown = drawn.filter((v) => v.box);
  shown.forEach((v, i) => {
    const { x, y, width, height } = v.box;
    if (v.shape.classList.contains("dim")) return;
    if (Math.min(width, height) < 11 || Math.max(width, height) < 26) return;
    const upwards = width < 46 && height > width;
    const [long, high] = upwards ? [height, width] : [width, height];
    const text = fit(v.name, long - 8);
    if (!text) return;
    const size = formatBytes(v.size), two = high >= 29 && v.size > 0 && widthOf(size) < long - 8;
    const lines = two ? 27 : 12, written = Math.max(widthOf(text), two ? widthOf(size) : 0);
    const area = upwards ? { x: x + width / 2 - lines / 2, y: y + height - 4 - written, width: lines, height: written }
      : { x: x + 4, y: y + height / 2 - lines / 2, width: written, height: lines };
    for (let n = i + 1; n < shown.length; n++) if (overlap(area, shown[n].box)) return;
    const at = upwards ? { transform: `translate(${(x + width / 2 + (two ? -3 : 4)).toFixed(1)} ${(y + height - 4).toFixed(1)}) rotate(-90)` }
      : { x: (x + 4).toFixed(1), y: (y + height / 2 + (two ? -3 : 4)).toFixed(1) };
    svgElement("text", { class: "on", "data-label": v.id, ...at }, layers.labels, text);
    if (!two) return;
    const second = upwards ? { transform: `translate(${(x + width / 2 + 10).toFixed(1)} ${(y + height - 4).toFixed(1)}) rotate(-90)` } : { x: at.x, y: (y + height / 2 + 10).toFixed(1) };
    svgElement("text", { class: "on small", ...second }, layers.labels, size);
  });
}

// drawAxis numbers the steps, and names their operators where there is place.
function drawAxis() {
  layers.axis.replaceChildren();
  const y = view.height - axisHeight, column = xOf(2) - xOf(0);
  svgElement("path", { d: `M${gutter} ${y}h${plotWidth()}`, class: "edge" }, layers.axis);
  let every = 1;
  for (const n of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]) { every = n; if (column * n >= 40) break; }
  const first = Math.max(0, Math.floor(view.from / 2)), last = Math.min(steps.length - 1, Math.ceil(view.to / 2));
  for (let k = Math.ceil(first / every) * every; k <= last; k += every) {
    const x = xOf(2 * k + 1);
    if (x - widthOf(String(k)) / 2 < gutter - 3 || x > view.width - marginRight - 12) continue;
    svgElement("text", { x: x.toFixed(1), y: y + 14, class: "mid" }, layers.axis, k);
    if (every > 1 || column < 30) continue;
    const op = fit(steps[k].op, column - 4);
    if (op) svgElement("text", { x: x.toFixed(1), y: y + 27, class: "mid op" }, layers.axis, op);
  }
  svgElement("text", { x: gutter - 6, y: y + 14, class: "right" }, layers.axis, "step");
}

// drawMarks shows the peak, the chosen step, and the chosen value with its writer and readers.
function drawMarks(chosen) {
  layers.marks.replaceChildren();
  layers.flags.replaceChildren();
  const top = topMargin, height = plotHeight();
  const column = (k, name) => svgElement("rect", { x: xOf(2 * k).toFixed(2), y: top, width: Math.max(xOf(2 * k + 2) - xOf(2 * k), 2).toFixed(2), height, class: name }, layers.marks);
  if (steps.length > 0) {
    column(plan.peak.step, "peak");
    const x = xOf(2 * plan.peak.step + 1);
    if (x > gutter && x < view.width - marginRight) svgElement("text", { x: x.toFixed(1), y: view.height - axisHeight + 40, class: "mid mark" }, layers.flags, "peak");
  }
  if (chosen.step >= 0) column(chosen.step, "chosen");
  const v = chosen.value;
  if (!v?.box) return;
  svgElement("rect", { ...v.box, class: "outline" }, layers.marks);
  const y = v.box.y + v.box.height;
  for (const k of [v.writer, ...v.readers]) {
    if (k < 0) continue;
    const x = xOf(2 * k + 1);
    svgElement("path", { d: k === v.writer ? `M${x} ${y - 7}l5 7h-10z` : `M${x} ${y}l5 -7h-10z`, class: "tick" }, layers.marks);
  }
}

// drawGauge shows all memory at one scale at the right, and which part of it is in view.
function drawGauge() {
  layers.gauge.replaceChildren();
  const x = view.width - 34, width = 20, total = Math.max(bands.reduce((n, b) => n + b.bytes, 0), 1), height = plotHeight();
  let sum = 0, from = null, to = 0;
  for (const b of bands) {
    const part = svgElement("rect", { x, y: (topMargin + height * (1 - (sum + b.bytes) / total)).toFixed(2), width, height: (height * b.bytes / total).toFixed(2),
      class: "part-" + (b.space === "arena" ? "fresh" : b.space) }, layers.gauge);
    svgElement("title", {}, part, `${b.name}: ${formatBytes(b.bytes)}`);
    const visible = (y) => Math.min(Math.max((yOf(b, 0) - y) / view.scale, 0), b.bytes);
    const low = visible(topMargin + height), high = visible(topMargin);
    if (high > low) [from, to] = [from ?? sum + low, sum + high];
    sum += b.bytes;
  }
  const y1 = topMargin + height * (1 - (from ?? 0) / total), y0 = topMargin + height * (1 - to / total);
  svgElement("rect", { x: x - 4, y: (y0 - 1).toFixed(2), width: width + 8, height: Math.max(y1 - y0 + 2, 4).toFixed(2), class: "window" }, layers.gauge);
  svgElement("text", { x: x + width / 2, y: 12, class: "mid" }, layers.gauge, "all");
  svgElement("text", { x: x + width / 2, y: view.height - axisHeight + 14, class: "mid" }, layers.gauge, formatBytes(total).replace(" ", "\u2009"));
}

// gaugeTo moves the view to the bytes at a height of the gauge.
function gaugeTo(y) {
  let bytes = bands.reduce((n, b) => n + b.bytes, 0) * (1 - (y - topMargin) / plotHeight());
  const band = bands.find((b) => (bytes -= b.bytes) <= 0) ?? bands.at(-1);
  setBytes(view.scale, view.bottom + topMargin + plotHeight() / 2 - yOf(band, band.bytes + bytes));
}

function measure() {
  view.width = Math.max(560, Math.floor(plot.parentElement.clientWidth));
  plot.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
  plot.setAttribute("height", view.height);
  frame.setAttribute("width", plotWidth());
  frame.setAttribute("height", plotHeight());
}
