// Tables that sort by any column. A column has a label, the value to sort by, and the text or element to show.

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) {
    if (k === "onclick") e.addEventListener("click", v);
    else if (v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children);
  return e;
}

// makeTable returns a table of rows. sorted is the column to begin with; sorting by it again turns the order around. row, if
// there is one, gets each row's element and its data.
function makeTable({ columns, rows, sorted = 0, descending = true, foot, row: dress, label }) {
  const table = element("table", { "aria-label": label }), body = element("tbody"), heads = [];
  const order = { column: sorted, descending };
  const made = rows.map((data) => {
    const tr = element("tr");
    for (const c of columns) {
      const shown = c.show(data);
      tr.append(element("td", c.number ? { class: "number" } : c.wide ? { class: "wide" } : {}, shown ?? ""));
    }
    dress?.(tr, data);
    return { tr, data };
  });
  const compare = (a, b) => typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  function sort() {
    const by = columns[order.column].by, sign = order.descending ? -1 : 1;
    const keys = new Map(made.map((m) => [m, by(m.data)]));
    body.replaceChildren(...made.toSorted((a, b) => sign * compare(keys.get(a), keys.get(b))).map((m) => m.tr));
    heads.forEach((th, i) => i === order.column ? th.setAttribute("aria-sort", order.descending ? "descending" : "ascending") : th.removeAttribute("aria-sort"));
  }
  const head = element("tr");
  columns.forEach((c, i) => {
    const button = element("button", { title: c.title ?? "", onclick: () => {
      Object.assign(order, i === order.column ? { descending: !order.descending } : { column: i, descending: Boolean(c.number) });
      sort();
    } }, c.label);
    const th = element("th", { scope: "col", class: c.number ? "number" : false }, button);
    heads.push(th);
    head.append(th);
  });
  table.append(element("thead", {}, head), body);
  if (foot) table.append(element("tfoot", {}, ...foot.map(([bytes, text]) => element("tr", {}, element("td", { class: "number" }, bytes), element("td", { colspan: columns.length - 1 }, text)))));
  sort();
  return element("div", { class: "list", tabindex: 0, role: "region", "aria-label": label }, table);
}

const bytesText = (n) => element("span", { title: `${n} bytes` }, formatBytes(n));
const whenWritten = (v) => v.writer;
const whenRead = (v) => v.readers.at(-1) ?? -1;

// stepLink is a button that chooses a step.
function stepLink(k, text = stepName(k)) {
  return element("button", { class: "link", "data-step": k, title: stepText(k), onclick: () => choose({ step: k }) }, `${k}: ${text}`);
}

function valueLink(v) {
  return element("button", { class: "link value", "data-choose": v.id, title: factsOf(v).join("\n"), onclick: () => choose({ value: v }) }, element("i", { class: "swatch " + kindOf(v) }), element("span", {}, v.name));
}

// Columns that tables of values share.
const columnOf = {
  size: { label: "size", number: true, title: "bytes of the value", by: (v) => v.size, show: (v) => v.space === "own" ? "?" : bytesText(v.size) },
  value: { label: "value", wide: true, by: (v) => v.name, show: valueLink },
  type: { label: "type", by: (v) => v.type, show: (v) => v.type },
  space: { label: "in", by: (v) => v.space, show: (v) => v.space },
  offset: { label: "at", number: true, title: "offset in its space", by: (v) => v.offset, show: (v) => v.offset },
  written: { label: "written by", wide: true, by: whenWritten, show: (v) => v.writer >= 0 ? stepLink(v.writer) : v.space === "input" ? "the caller" : "the model" },
  read: { label: "last read by", wide: true, by: whenRead, show: (v) => v.readers.length > 0 ? stepLink(v.readers.at(-1)) : v.space === "output" ? "the caller" : "no step" },
  place: { label: "place", wide: true, title: "whose bytes it lies in, or why it has a place of its own", by: placeText, show: (v) => v.writer >= 0 && !v.inPlace && v.declined.length === 0 ? "own place" : placeText(v) },
};

// drawAlive lists what lives in a step. The counts of the arena add up to the bytes that live then, at the peak to the peak.
function drawAlive(section, k) {
  const alive = aliveIn(k);
  const weights = alive.values.filter((v) => v.space === "weight" || v.space === "constant");
  const rows = alive.values.filter((v) => !weights.includes(v));
  const arena = rows.filter((v) => v.space === "arena"), others = rows.length - arena.length;
  const counted = (v) => alive.counts.get(v) ?? 0;
  const foot = [[bytesText(alive.sum), `of the arena, in ${plural(arena.length, "value")}` + (k === plan.peak.step ? ": the peak" : `: ${share(alive.sum, plan.peak.bytes)} of the peak`)]];
  if (others > 0) foot.push([bytesText(sumOf(rows.filter((v) => v.space !== "arena" && !v.inPlace))), `outside the arena, in ${plural(others, "value")}: inputs, outputs and what lies in their bytes`]);
  foot.push([bytesText(plan.weight_bytes), `in ${plural(weights.length, "weight")}, which live all the time`]);
  const table = makeTable({
    label: `Values that live in step ${k}`, rows, foot,
    columns: [
      { label: "of the arena", number: true, title: "bytes of the arena, in blocks of 64; what several values hold counts once", by: (v) => counted(v) * 2 ** 20 + v.size / 2 ** 42, show: (v) => v.space === "arena" ? bytesText(counted(v)) : "–" },
      columnOf.size, columnOf.value,
      { label: "here because", wide: true, by: (v) => roleOf(v, k).text, show: (v) => roleOf(v, k).text },
      columnOf.written, columnOf.read, columnOf.type, columnOf.space, columnOf.place,
    ],
    row: (tr, v) => { tr.dataset.alive = v.id; tr.dataset.counted = counted(v); tr.className = v.space === "arena" ? roleOf(v, k).group : "outside"; },
  });
  const title = `Alive in step ${k}${k === plan.peak.step ? ", the peak" : ""}`;
  section.replaceChildren(element("h2", { id: "alive-title" }, title), element("p", { class: "hint" }, whyText(k, alive)), table);
  section.dataset.step = k;
}

const share = (n, of) => of > 0 ? `${(100 * n / of).toFixed(n === of ? 0 : 1)} %` : "0 %";
const sumOf = (list) => list.reduce((n, v) => n + v.size, 0);

// whyText says what the bytes of a step are there for.
function whyText(k, alive, which = `the ${formatBytes(alive.sum)} of the arena that live in this step`) {
  const sums = { written: 0, last: 0, read: 0, waits: 0 };
  for (const [v, bytes] of alive.counts) sums[roleOf(v, k).group] += bytes;
  const words = { written: "are written by it", last: "are read by it for the last time", read: "are read by it and again later", waits: "only wait for a later step" };
  const parts = Object.entries(sums).filter(([, n]) => n > 0).map(([group, n]) => `${formatBytes(n)} ${words[group]}`);
  return parts.length > 0 ? `Of ${which}, ${parts.join(", ")}.` : "Nothing of the arena lives in this step.";
}

// drawLists writes the plan's lists, each complete. Long ones are made when they are opened.
function drawLists(section) {
  const at = (op, node) => node ? `${op} (${node})` : op;
  const named = (name, k) => { const v = byName.get(name)?.find((v) => k === undefined || v.readers.includes(k) || v.writer === k) ?? byName.get(name)?.[0]; return v ? valueLink(v) : name; };
  const total = (list) => formatBytes(list.reduce((n, x) => n + x.bytes, 0));
  const bytes = { label: "bytes", number: true, by: (x) => x.bytes, show: (x) => bytesText(x.bytes) };
  const step = { label: "at", wide: true, by: (x) => stepOfCall.get(x.call) ?? -1, show: (x) => stepOfCall.has(x.call) ? stepLink(stepOfCall.get(x.call)) : at(x.op ?? "", x.node) };
  const reason = { label: "reason", wide: true, by: (x) => x.reason, show: (x) => x.reason };
  const value = (label) => ({ label, wide: true, by: (x) => x.value, show: (x) => named(x.value, stepOfCall.get(x.call)) });
  const node = { label: "at", wide: true, by: (x) => x.node, show: (x) => x.node };
  const moved = plan.steps.filter((s) => s.moved > 0);
  const lists = [
    ["declined", `Not in place: ${plural(plan.declined.length, "operand")}, ${total(plan.declined)}`, plan.declined, [bytes, value("operand"), step, reason]],
    ["in-place", `In place: ${plural(plan.in_place.length, "result")}, ${total(plan.in_place)} that needed no place of their own`, plan.in_place,
      [bytes, value("result"), { label: "in the bytes of", wide: true, by: (x) => x.of, show: (x) => named(x.of, stepOfCall.get(x.call)) }, { label: "kind", by: (x) => x.kind, show: (x) => x.kind }, step]],
    ["moved", `Moved and not computed: ${formatBytes(moved.reduce((n, s) => n + s.moved, 0))} in a run, by ${plural(moved.length, "step")}`, moved, [{ ...bytes, by: (s) => s.moved, show: (s) => bytesText(s.moved) }, step]],
    ["copies", `Copies: ${plan.copies.length}, ${total(plan.copies)}`, plan.copies, [bytes, value("value"), node, reason]],
    ["unpromised", `Size depends on data: ${plural(plan.unpromised.length, "value")}, outside every figure`, plan.unpromised, [value("value"), node, reason]],
    ["weights", `Weights: ${plural(values.filter((v) => v.space === "weight" && v.writer < 0).length, "weight")}, ${formatBytes(plan.weight_bytes)}`, values.filter((v) => v.space === "weight" && v.writer < 0),
      [{ label: "held", number: true, title: "bytes that it takes, packed for kernels where these read it so", by: (v) => v.held, show: (v) => bytesText(v.held) }, columnOf.size, columnOf.value, columnOf.type,
        { label: "held as", by: (v) => v.packed ? 1 : 0, show: (v) => v.packed ? v.packed.bytes < v.held ? "in the file's form and packed" : "packed" : "in the file's form" }, columnOf.read]],
    ["all", `All ${plural(values.length, "value")}`, values, [columnOf.size, columnOf.value, columnOf.type, columnOf.space, columnOf.offset, { label: "lives", by: (v) => v.start, show: lifeText }, columnOf.written, columnOf.read, columnOf.place]],
  ];
  for (const [id, title, rows, columns] of lists) {
    if (rows.length === 0) continue;
    const details = element("details", { id: "list-" + id }, element("summary", {}, title));
    const fill = () => {
      if (details.children.length > 1) return;
      details.append(makeTable({ label: title, rows, columns, row: (tr, x) => { if (x.id !== undefined) tr.dataset.row = x.id; } }));
    };
    details.addEventListener("toggle", () => { if (details.open) fill(); });
    section.append(details);
  }
}
