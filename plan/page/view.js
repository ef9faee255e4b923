// What the reader chooses, and how the view moves.

const chosen = { step: -1, value: null }; // -1: none, and the tables show the peak
const search = { text: "", found: [], at: -1 };
const byId = (id) => document.getElementById(id);

// choose selects a step, a value or both, and shows what lives then. What is left out stays as it is.
function choose({ step, value }) {
  if (value !== undefined) chosen.value = value;
  if (value && step === undefined && (chosen.step < 0 || !livesIn(value, chosen.step))) step = Math.min(Math.max(0, value.writer), steps.length - 1);
  if (step !== undefined) chosen.step = step;
  if (chosen.value && step !== undefined && value === undefined && step >= 0 && !livesIn(chosen.value, step)) chosen.value = null;
  keepInView();
  showChosen();
}

function showChosen() {
  const k = chosen.step >= 0 ? chosen.step : plan.peak.step;
  if (steps.length > 0) {
    drawStepCard(k);
    drawAlive(byId("alive"), k);
    if (chosen.step >= 0) announce(`${stepText(k)}, ${plural(aliveIn(k).values.length, "value")} live`);
  }
  drawValueCard();
  dim();
  drawOverview();
  drawMarks(chosen);
  drawLabels();
}

const announce = (text) => { byId("announce").textContent = text; };

// dim takes back what does not live in the chosen step or does not match the search.
function dim() {
  const found = search.text === "" ? null : new Set(search.found.filter((f) => f.value).map((f) => f.value));
  for (const v of drawn) {
    const out = found ? !found.has(v) : chosen.step >= 0 && !livesIn(v, chosen.step);
    v.shape.classList.toggle("dim", out);
    v.shape.classList.toggle("found", Boolean(found?.has(v)));
  }
  for (const s of scratchShapes) s.shape.classList.toggle("dim", found !== null || chosen.step >= 0 && s.k !== chosen.step);
}

function drawStepCard(k) {
  const s = steps[k], card = byId("step"), reads = [...new Set(s.reads)].map((id) => byID.get(id));
  const list = (label, values) => values.length === 0 ? [] : [element("dt", {}, label), element("dd", {}, ...values.flatMap((v) => [valueLink(v), element("small", {}, ` ${v.space === "own" ? "?" : formatBytes(v.size)} `)]))];
  const number = element("input", { type: "number", min: 0, max: steps.length - 1, value: k, "aria-label": "step" });
  number.addEventListener("change", () => { const n = Number(number.value); if (Number.isInteger(n) && n >= 0 && n < steps.length) choose({ step: n }); });
  card.replaceChildren(
    element("h2", { id: "step-title" }, "Step ", number, ` of ${steps.length}${k === plan.peak.step ? ", the peak" : ""}`,
      element("span", { class: "tools" },
        element("button", { "aria-label": "step before", onclick: () => move(-1) }, "◀"), element("button", { "aria-label": "step after", onclick: () => move(1) }, "▶"),
        element("button", { onclick: () => choose({ step: plan.peak.step }) }, "peak"))),
    element("dl", {}, element("dt", {}, "operator"), element("dd", {}, s.op), ...(s.node ? [element("dt", {}, "node"), element("dd", { class: "name" }, s.node)] : []),
      ...list("reads", reads), ...list("writes", writtenBy[k]),
      element("dt", {}, "scratch"), element("dd", {}, s.scratch > 0 ? `${formatBytes(s.scratch)} × ${plural(plan.threads, "thread")}` : "none")));
  card.dataset.step = k;
}

function drawValueCard() {
  const card = byId("value"), v = chosen.value;
  if (!v) {
    card.replaceChildren(element("h2", { id: "value-title" }, "Value"), element("p", { class: "hint" }, "Choose a value in the drawing, in a table or by its name."));
    delete card.dataset.value;
    return;
  }
  const row = (label, ...what) => [element("dt", {}, label), element("dd", {}, ...what)];
  const refused = v.refused.filter((d) => d.value === v.name);
  card.replaceChildren(element("h2", { id: "value-title", class: "name" }, element("i", { class: "swatch " + kindOf(v) }), v.name),
    element("dl", {}, ...row("type", typeText(v)), ...row("lies in", `${spaceText(v)}, ${lifeText(v)}`),
      ...row("written by", v.writer >= 0 ? stepLink(v.writer) : v.space === "input" ? "the caller" : "the model"),
      ...row(v.readers.length === 1 ? "read by" : "read by, last first", ...(v.readers.length > 0 ? v.readers.toReversed().map((k) => stepLink(k)) : ["no step"])),
      ...(placeText(v) ? row("place", placeText(v)) : []),
      ...(refused.length > 0 ? row("not taken by", ...refused.flatMap((d) => [stepLink(stepOfCall.get(d.call)), ` ${d.reason} `])) : [])));
  card.dataset.value = v.id;
}

// The view.

function draw() {
  drawGround();
  drawShapes();
  drawAxis();
  drawGauge();
  dim();
  drawOverview();
  drawMarks(chosen);
  drawLabels();
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function setTime(from, to) {
  const span = Math.min(Math.max(to - from, 4), lastTime);
  view.from = Math.min(Math.max(from, 0), lastTime - span);
  view.to = view.from + span;
}

function setBytes(scale, bottom) {
  const all = bands.reduce((n, b) => n + b.bytes, 0);
  view.scale = Math.min(Math.max(scale, (plotHeight() - 4 - bandGap * bands.length) / Math.max(all, 1)), 4);
  view.bottom = Math.min(Math.max(bottom, 0), Math.max(0, heightOf(bands) - plotHeight()));
}

function zoomTime(factor, x = gutter + plotWidth() / 2) {
  const t = timeAt(x);
  setTime(t - (t - view.from) * factor, t + (view.to - t) * factor);
  redraw();
}

function zoomBytes(factor, y = topMargin + plotHeight() / 2) {
  // What lies at y stays there: the gaps between bands keep their height, so that is the band's and not the stack's byte.
  const band = bands.findLast((b) => yOf(b, 0) >= y) ?? bands[0], bytes = (yOf(band, 0) - y) / view.scale;
  setBytes(view.scale / factor, view.bottom);
  setBytes(view.scale, view.bottom + y - yOf(band, bytes));
  redraw();
}

// fitBands sets the scale at which the bands fill the frame.
function fitBands(list) {
  const bytes = list.reduce((n, b) => n + b.bytes, 0);
  setBytes((plotHeight() - 4 - bandGap * (list.length - 1)) / Math.max(bytes, 1), 0); // what is thin at the top stays in view
  setBytes(view.scale, baseOf(list[0]));
}

const fits = {
  "fit-all": () => { setTime(0, lastTime); fitBands(bands); },
  "fit-run": () => { setTime(0, lastTime); fitBands(bands.filter((b) => b.space !== "weight")); },
  "fit-arena": () => { setTime(0, lastTime); fitBands([bandOf("arena")]); },
  "fit-peak": () => { choose({ step: plan.peak.step }); const t = 2 * plan.peak.step + 1; setTime(t - 24, t + 24); fitBands([bandOf("arena")]); },
};

// start is the first view: the arena large enough to read, and of the rest what there is place for.
function start() {
  const run = bands.filter((b) => b.space !== "weight"), arena = bandOf("arena");
  const whole = run.reduce((n, b) => n + b.bytes, 0);
  setTime(0, lastTime);
  if (arena.bytes * 2 >= whole || arena.bytes === 0) return fitBands(run);
  setBytes(plotHeight() * 0.62 / arena.bytes, 0);
}

// keepInView moves the view to the chosen step and value if they are outside of it.
function keepInView() {
  const span = view.to - view.from, k = chosen.step;
  if (k >= 0 && (2 * k < view.from || 2 * k + 2 > view.to)) setTime(2 * k + 1 - span / 2, 2 * k + 1 + span / 2);
  const v = chosen.value;
  if (v?.band) {
    const low = yOf(v.band, v.low), high = yOf(v.band, v.high), top = topMargin, bottom = top + plotHeight();
    if (low < top + 2 || high > bottom - 2) setBytes(view.scale, view.bottom + (top + bottom) / 2 - (low + high) / 2);
  }
  redraw();
}

function move(by) {
  const k = chosen.step >= 0 ? chosen.step : plan.peak.step;
  choose({ step: Math.min(Math.max(k + by, 0), steps.length - 1) });
}

// The curve of the whole run.

const overview = byId("overview"), overviewHeight = 64;
const curve = liveBytes();
const overviewX = (t) => gutter + plotWidth() * t / lastTime;

function drawOverview() {
  overview.setAttribute("viewBox", `0 0 ${view.width} ${overviewHeight}`);
  overview.setAttribute("height", overviewHeight);
  overview.replaceChildren();
  const top = 4, height = overviewHeight - 6, y = (n) => (top + height - height * n / Math.max(plan.arena_bytes, 1)).toFixed(2);
  svgElement("rect", { x: gutter, y: top, width: plotWidth(), height, class: "ground" }, overview);
  let path = `M${gutter} ${y(0)}`;
  for (const [t, bytes] of curve) path += `H${overviewX(t).toFixed(2)}V${y(bytes)}`;
  svgElement("path", { d: path + `H${gutter + plotWidth()}V${y(0)}Z`, class: "curve" }, overview);
  svgElement("text", { x: 4, y: top + 10, class: "band" }, overview, "live bytes");
  svgElement("text", { x: 4, y: top + 24 }, overview, "of the arena");
  svgElement("text", { x: gutter - 6, y: top + 10, class: "right" }, overview, "");
  const mark = (k, name) => svgElement("rect", { x: overviewX(2 * k).toFixed(2), y: top, width: Math.max(overviewX(2) - overviewX(0), 2).toFixed(2), height, class: name }, overview);
  if (steps.length > 0) mark(plan.peak.step, "peak");
  if (chosen.step >= 0) mark(chosen.step, "chosen");
  if (view.to - view.from < lastTime) svgElement("rect", { x: overviewX(view.from), y: top, width: overviewX(view.to) - overviewX(view.from), height, class: "window" }, overview);
}
