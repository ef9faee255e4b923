// What the plan says, and what follows from it. The other parts read this and the document, and change neither.

const plan = JSON.parse(document.getElementById("plan").textContent);
const steps = plan.steps;
const lastTime = plan.values.reduce((t, v) => Math.max(t, v.end), Math.max(2 * steps.length, 2)); // in half-steps
const block = 64; // bytes: the arena is handed out in blocks of this size
const stepOfCall = new Map(steps.map((s, k) => [s.call, k]));

const values = plan.values.map((v, index) => ({
  ...v, index,
  writer: v.start % 2 === 1 ? (v.start - 1) / 2 : -1, // the step, -1 for inputs and weights
  lastNeeded: Math.ceil(v.end / 2) - 1,
  readers: [],     // steps in order
  inPlace: null,   // the entry of the plan's list
  declined: [],    // of the step that writes it: operands whose bytes it did not take
  refused: [],     // of its readers: why they did not take its bytes
  packed: null,    // of weights
  held: v.size,    // bytes that it takes in its band
  extent: extentOf(v), // bytes from its first to behind its last
}));

// extentOf returns the bytes that a value spans: with strides more than its size, and bytes of others lie between.
function extentOf(v) {
  if (!v.strides) return v.size;
  const dims = v.type.slice(v.type.indexOf("[") + 1, -1).split(",").map(Number);
  const elements = dims.reduce((n, d) => n * d, 1), span = dims.reduce((n, d, i) => n + (d - 1) * v.strides[i], 1);
  return span * (v.size / elements);
}
const byID = new Map(values.map((v) => [v.id, v]));
const byName = new Map();
for (const v of values) byName.has(v.name) ? byName.get(v.name).push(v) : byName.set(v.name, [v]);

steps.forEach((s, k) => {
  for (const id of s.reads) {
    const v = byID.get(id);
    if (v.readers.at(-1) !== k) v.readers.push(k);
  }
});
for (const x of plan.in_place) {
  const v = byName.get(x.value)?.find((v) => v.writer === stepOfCall.get(x.call));
  if (v) v.inPlace = x;
}
const writtenBy = steps.map(() => []);
for (const v of values) if (v.writer >= 0 && v.writer < steps.length) writtenBy[v.writer].push(v);
for (const d of plan.declined) {
  const k = stepOfCall.get(d.call);
  for (const v of writtenBy[k] ?? []) if (!v.inPlace) v.declined.push(d);
  for (const v of byName.get(d.value) ?? []) if (v.readers.includes(k)) v.refused.push(d);
}
for (const p of plan.packed) {
  const v = byID.get(p.id);
  if (v) [v.packed, v.held] = [p, v.size - p.unloaded + p.bytes];
}

// kindOf is the class of a value on the drawing.
function kindOf(v) {
  if (v.space === "slot") return v.inPlace ? "same" : "view";
  if (v.space !== "arena") return v.space === "constant" ? "weight" : v.space;
  if (!v.inPlace) return "fresh";
  return v.inPlace.kind === "view" ? "view" : "same";
}

const kinds = [
  ["fresh", "own place"], ["same", "in place of an operand"], ["view", "view or part of another value"], ["scratch", "scratch"],
  ["input", "input"], ["output", "output"], ["own", "size depends on data"], ["weight", "weight"],
];

const stepName = (k) => steps[k].node === "" ? steps[k].op : `${steps[k].op} (${steps[k].node})`;
const stepText = (k) => `step ${k}: ${stepName(k)}`;
const plural = (n, what) => n === 1 ? `1 ${what}` : `${n} ${what}s`;

function formatBytes(n) {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  n /= 1024;
  while (n >= 1023.5 && units.length > 1) { n /= 1024; units.shift(); }
  return `${rounded(n, n < 9.995 ? 2 : n < 99.95 ? 1 : 0)} ${units[0]}`;
}

// rounded writes n with so many decimals as the reports do, which round halves to even.
function rounded(n, decimals) {
  const scaled = n * 10 ** decimals, whole = Math.floor(scaled);
  return scaled - whole === 0.5 ? ((whole + whole % 2) / 10 ** decimals).toFixed(decimals) : n.toFixed(decimals);
}

// lifeText says during which steps a value lives.
function lifeText(v) {
  const first = Math.floor(v.start / 2), last = Math.min(v.lastNeeded, steps.length);
  if (v.writer < 0 && v.start === 0) return "all the time";
  if (last >= steps.length) return `step ${first} to the end`;
  return first >= last ? `step ${first}` : `steps ${first} to ${last}`;
}

const writerText = (v) => v.writer >= 0 ? `written by ${stepText(v.writer)}` : v.space === "input" ? "written by the caller" : "part of the model";

// readerText names the last reader, and what keeps the value beyond it.
function readerText(v) {
  if (v.readers.length === 0) {
    return v.space === "output" ? "read by no step: an output" : v.lastNeeded < steps.length ? `read by no step, kept to step ${v.lastNeeded}` : "read by no step";
  }
  const last = v.readers.at(-1), more = v.readers.length > 1 ? `, the last of ${v.readers.length} readers` : "";
  const kept = v.space === "output" ? "; kept as an output" : v.space === "arena" && v.lastNeeded > last ? `; kept to the end of step ${v.lastNeeded}` : "";
  return `last read by ${stepText(last)}${more}${kept}`;
}

// placeText says whose bytes a value lies in or, where it has its own, why it took those of no operand.
function placeText(v) {
  if (v.inPlace) {
    return { view: `a view of ${v.inPlace.of}: its bytes, or a part of them`, same: `in place: in the bytes of ${v.inPlace.of}`,
      accumulate: `in place: added into ${v.inPlace.of}`, update: `in place: a region of ${v.inPlace.of} is written`,
      permute: `in place: the elements of ${v.inPlace.of} in another order`, narrow: `in place: in the first bytes of ${v.inPlace.of}`,
      part: `made of parts: ${v.inPlace.of} lies where it is one` }[v.inPlace.kind];
  }
  if (v.writer < 0) return "";
  if (v.space === "slot") return `computed where it is a part of ${byID.get(v.arg).name}, which the loop stacks`;
  if (v.declined.length === 0) return "a place of its own: its step can write over none of its operands";
  return v.declined.map((d) => `not in place of ${d.value}: ${d.reason}`).join("; ");
}

function typeText(v) {
  if (v.space === "own") return `${v.type}, size depends on data`;
  const packed = v.packed ? `, held packed in ${formatBytes(v.held)}` : "";
  return `${v.type}, ${formatBytes(v.size)}${v.size < 1024 ? "" : ` (${v.size} bytes)`}${packed}`;
}

// spaceText says where a value lies, and how where it has strides.
function spaceText(v) {
  const strides = v.strides ? ` to ${v.offset + v.extent}, strides ${v.strides.join(" ")}` : "";
  return v.space === "arena" || v.strides ? `${v.space} at ${v.offset}${strides}` : v.space;
}

const factsOf = (v) => [typeText(v), `${spaceText(v)}, ${lifeText(v)}`, writerText(v), readerText(v), placeText(v),
  ...v.refused.filter((d) => d.value === v.name).map((d) => `its bytes were not taken by step ${stepOfCall.get(d.call)}: ${d.reason}`)].filter(Boolean);

const livesIn = (v, k) => v.start < 2 * k + 2 && v.end > 2 * k;
const livesAt = (v, t) => v.start <= t && t < v.end;

// cover adds [lo, hi) to a sorted list of ranges that do not touch, and returns how many bytes of it are new.
function cover(ranges, lo, hi) {
  let fresh = hi - lo, first = 0;
  while (first < ranges.length && ranges[first][1] < lo) first++;
  let last = first;
  for (; last < ranges.length && ranges[last][0] <= hi; last++) {
    fresh -= Math.max(0, Math.min(hi, ranges[last][1]) - Math.max(lo, ranges[last][0]));
  }
  if (last > first) [lo, hi] = [Math.min(lo, ranges[first][0]), Math.max(hi, ranges[last - 1][1])];
  ranges.splice(first, last - first, [lo, hi]);
  return fresh;
}

// arenaAt counts the bytes of the arena that live at one time, in blocks. Each value counts for what no larger one has counted,
// so the counts add up to the sum.
function arenaAt(t) {
  const alive = values.filter((v) => v.space === "arena" && v.size > 0 && livesAt(v, t));
  alive.sort((a, b) => b.extent - a.extent || a.start - b.start || a.index - b.index);
  const ranges = [], counts = new Map();
  let sum = 0;
  for (const v of alive) {
    const fresh = cover(ranges, Math.floor(v.offset / block) * block, Math.ceil((v.offset + v.extent) / block) * block);
    counts.set(v, fresh);
    sum += fresh;
  }
  return { counts, sum };
}

// aliveIn returns what lives during a step: the values, what each takes of the arena at the fuller one of the step's two
// moments (reading, writing), and the sum of that.
function aliveIn(k) {
  const [reading, writing] = [arenaAt(2 * k), arenaAt(2 * k + 1)];
  const { counts, sum } = reading.sum > writing.sum ? reading : writing;
  return { values: values.filter((v) => livesIn(v, k)), counts, sum };
}

// roleOf says why a value is there during step k, and whether it is there for that step or waits for a later one.
function roleOf(v, k) {
  const next = v.readers.find((r) => r > k), reads = v.readers.includes(k);
  const later = next === undefined ? "" : stepText(next);
  if (v.writer === k) return { group: "written", text: "written here" };
  if (reads && v.end === 2 * k + 1) {
    const heir = writtenBy[k].find((w) => w.inPlace?.of === v.name);
    return { group: "last", text: heir ? `read here; its bytes become ${heir.name}` : "read here for the last time" };
  }
  if (reads) return later ? { group: "read", text: `read here, and by ${later}` } : { group: "last", text: v.space === "arena" ? "read here for the last time" : "read here" };
  if (later) return { group: "waits", text: `waits for ${later}` };
  if (v.space === "output") return { group: "waits", text: "an output" };
  if (v.space === "input") return { group: "waits", text: "an input" };
  if (v.space === "weight" || v.space === "constant") return { group: "waits", text: "a weight" };
  return { group: "waits", text: `kept to the end of step ${v.lastNeeded}` };
}

// liveBytes is the curve of the arena: for each time the bytes that live from then on, in blocks.
function liveBytes() {
  const events = [];
  for (const v of values) {
    if (v.space !== "arena" || v.size === 0) continue;
    const lo = Math.floor(v.offset / block), hi = Math.ceil((v.offset + v.extent) / block);
    events.push([v.start, 1, lo, hi], [v.end, -1, lo, hi]);
  }
  const edges = [...new Set(events.flatMap((e) => [e[2], e[3]]))].sort((a, b) => a - b);
  const at = new Map(edges.map((e, i) => [e, i])), held = new Int32Array(edges.length);
  events.sort((a, b) => a[0] - b[0]);
  const curve = [];
  let bytes = 0;
  events.forEach(([t, add, lo, hi], i) => {
    for (let n = at.get(lo); edges[n] < hi; n++) {
      const before = held[n] > 0;
      held[n] += add;
      bytes += ((held[n] > 0) - before) * (edges[n + 1] - edges[n]) * block;
    }
    if (i + 1 === events.length || events[i + 1][0] !== t) curve.push([t, bytes]);
  });
  return curve;
}
