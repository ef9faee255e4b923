// The summary: what the plan is for, all memory at one scale, the figures and the peak.

function drawSummary() {
  const subject = plan.shapes.length > 0 ? plan.shapes.map((s) => `${s.name}: ${s.type}${s.donated ? " (donated)" : ""}`).join(", ") : `model ${plan.model}`;
  byId("subject").textContent = subject;
  document.title = `Memory plan for ${subject}`;
  byId("model").textContent = `model ${plan.model}`;
  const runs = plan.max_concurrent, perRun = plan.arena_bytes + plan.scratch_bytes + plan.io_bytes, total = plan.weight_bytes + runs * perRun;
  drawBar(runs, total);
  const packed = plan.packed.reduce((n, p) => n + p.bytes, 0), dropped = plan.packed.reduce((n, p) => n + p.unloaded, 0);
  const unpromised = plan.unpromised.length > 0 ? `, and the buffers of ${plural(plan.unpromised.length, "value")} whose size depends on data` : "";
  const figures = [
    [["weight"], "weights", plan.weight_bytes, plan.packed.length > 0 ? `${plural(plan.packed.length, "weight")} packed in ${formatBytes(packed)}, in place of ${formatBytes(dropped)}` : ""],
    [["fresh"], "arena", plan.arena_bytes, `lower bound ${formatBytes(plan.lower_bound_bytes)}`],
    [["scratch"], "scratch", plan.scratch_bytes, `${plural(plan.threads, "thread")} × ${formatBytes(plan.scratch_per_thread)}`],
    [["input", "output"], "inputs, outputs", plan.io_bytes, ""],
    [[], "per run", perRun, "arena, scratch, inputs and outputs"],
    [[], "total", total, `weights + ${runs === 1 ? "1 run" : `${runs} concurrent runs`} = ${total} bytes${unpromised}`],
  ];
  byId("figures").replaceChildren(...figures.map(([kinds, label, bytes, note]) => element("div", { class: "figure" },
    element("dt", {}, ...kinds.map((kind) => element("i", { class: "swatch " + kind })), label), element("dd", { "data-figure": label, "data-bytes": bytes }, formatBytes(bytes)),
    ...(note ? [element("dd", { class: "note" }, note)] : []))));
  const above = plan.arena_bytes - plan.lower_bound_bytes;
  const bound = above === 0 ? "The arena is as small as this order and aliasing allow." : `The arena is ${formatBytes(above)} above its lower bound.`;
  const peak = plan.peak;
  byId("peak").textContent = steps.length === 0 ? bound : `Peak of the arena: ${formatBytes(peak.bytes)} in ${plural(peak.live.length, "value")}, at step ${peak.step} of ${steps.length}, ` +
    `${stepName(peak.step)}. ${whyText(peak.step, aliveIn(peak.step), "these")} ${bound}`;
}

function drawBar(runs, total) {
  const times = runs > 1 ? ` × ${runs} runs` : "";
  const parts = [["weight", "weights", plan.weight_bytes, ""], ["fresh", "arena", runs * plan.arena_bytes, times], ["scratch", "scratch", runs * plan.scratch_bytes, times],
    ["input", "inputs", runs * (bandOf("input")?.bytes ?? 0), times], ["output", "outputs", runs * (bandOf("output")?.bytes ?? 0), times]].filter((p) => p[2] > 0);
  byId("bar").replaceChildren(...parts.map(([kind, name, bytes, times]) => {
    const text = `${name}${times}: ${formatBytes(bytes)}, ${share(bytes, total)}`;
    const label = [text, `${name} ${formatBytes(bytes)}`, name].find((t) => widthOf(t) * 1.1 + 18 < (bytes / total) * byId("bar").clientWidth) ?? "";
    const part = element("div", { class: "part " + kind, title: text, "data-part": name, "data-bytes": bytes }, element("span", {}, label));
    part.style.flexGrow = bytes / total;
    return part;
  }));
  byId("legend").replaceChildren(...kinds.filter(([kind]) => kind === "scratch" ? plan.scratch_bytes > 0 : values.some((v) => kindOf(v) === kind))
    .map(([kind, label]) => element("span", {}, element("i", { class: "swatch " + kind }), label)));
}
