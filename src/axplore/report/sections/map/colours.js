"use strict";
// What the colours of the map mean, and its legend.
const colours = (() => {
  const { byId, svg, html } = elements;
  const { content, labels, isMember, statusOf } = atlas;
  const { map } = canvas;
  const RAMP = content.ramp;
  const OF_STATUS = { certified: "var(--certified)", open: "var(--open)", "set aside": "var(--aside)" };
  const log = (visits) => Math.log10(1 + visits);
  const MEASURES = {
    steps: { unit: "expected steps", of: (index) => content.shownSteps[index] },
    width: {
      unit: "width of the bounds",
      of: (index) => (content.upper[index] === null ? null : content.upper[index] - content.lower[index]),
    },
    visits: { unit: "visits, logarithmic", of: (index) => log(content.visits[index]) },
  };

  function onRamp(part) {
    const at = Math.max(0, Math.min(1, part)) * (RAMP.length - 1);
    const first = Math.min(RAMP.length - 2, Math.floor(at));
    const channel = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
    const mixed = [0, 1, 2].map((i) => channel(RAMP[first], i) * (1 - at + first) + channel(RAMP[first + 1], i) * (at - first));
    const dark = 0.3 * mixed[0] + 0.59 * mixed[1] + 0.11 * mixed[2] < 125;
    return { fill: `rgb(${mixed.map(Math.round).join(" ")})`, ink: dark ? "#fff" : "#000" };
  }

  function paint(mode) {
    const measure = MEASURES[mode];
    const members = Array.from({ length: content.members }, (_, index) => index);
    const values = measure ? members.map(measure.of).filter((value) => value !== null) : [];
    const low = Math.min(...values), high = Math.max(...values);
    const colourOf = (index) => {
      if (!isMember(index)) return { fill: "", ink: "var(--ink)" };
      if (!measure) return { fill: OF_STATUS[statusOf(index)], ink: "var(--paper)" };
      const value = measure.of(index);
      return value === null ? { fill: "var(--line)", ink: "var(--ink)" } : onRamp(high > low ? (value - low) / (high - low) : 0);
    };
    for (const [index, node] of canvas.nodes) {
      const colour = colourOf(index);
      node.querySelector(".shape").style.fill = colour.fill;
      node.ink = colour.ink;
      const inner = node.querySelector(".terminal");
      if (inner) inner.style.stroke = colour.ink;
      node.style.setProperty("--node-ink", colour.ink);
    }
    if (canvas.isGrid) for (const branch of canvas.layers.tree.children) branch.style.stroke = colourOf(+branch.dataset.index).fill;
    drawLegend(mode, low, high);
    drawing.drawNames();
  }

  function drawLegend(mode, low, high) {
    const items = [];
    const present = new Set(labels.map((_, index) => `${statusOf(index)}|${isMember(index)}`));
    const meaning = content.proven
      ? { "certified|true": "certified", "open|true": "in the atlas, not fully proven", "open|false": "open: on the frontier, undecided", "set aside|false": "set aside: proven too far" }
      : { "open|true": "found, not proven", "open|false": "on the frontier, not proven" };
    for (const [key, text] of Object.entries(meaning).filter(([kind]) => present.has(kind))) {
      const [status, member] = [key.split("|")[0], key.endsWith("true")];
      const shape = canvas.isGrid ? "M-8 -8H8V8H-8Z" : graph.outline(status, 20, 14);
      const icon = svg("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true" },
        svg("g", { class: `node ${status.replace(" ", "-")}${member ? "" : " frontier"}` }, svg("path", { class: "shape", d: shape }), ...(canvas.isGrid ? canvas.marks(status, 8, member) : [])));
      if (member) icon.querySelector(".shape").style.fill = mode === "status" ? OF_STATUS[status] : RAMP[2];
      items.push(html("span", {}, icon, ` ${text}`));
    }
    if (MEASURES[mode] && Number.isFinite(low)) {
      const ramp = html("span", { class: "ramp", "aria-hidden": "true" });
      ramp.style.background = `linear-gradient(to right, ${RAMP.join(",")})`;
      const shown = (value) => (mode === "visits" ? elements.number(Math.round(10 ** value - 1)) : value.toFixed(2));
      items.push(html("span", {}, `${shown(low)} `, ramp, ` ${shown(high)} ${MEASURES[mode].unit}`));
    }
    const say = (...texts) => items.push(...texts.map((text) => html("span", {}, text)));
    say("thick outline: the initial state");
    if (canvas.isGrid) say("joined cells: short ways", "orange line: the most likely route to the chosen state", "arrows: its policy; a round one resets", "dots: where its actions led");
    else say("orange: the route to the chosen state", "thin: other outcomes of its policy", "red: outcomes that leave the atlas", "dashed edge: less than 10 %");
    if (map.querySelector(".wall")) say("black lines: walls, which no transition crossed");
    if (!canvas.isGrid && content.layout.loops.length) say("↻: an action that changes nothing");
    if (!canvas.isGrid && content.layout.returns.length) say("↩: an action that leads to the initial state");
    if (map.querySelector(".empty")) say("dotted cell: never seen, or no state");
    if (map.querySelector(".cluster")) say("+12: the number of states hidden behind this one; click it to show them");
    if (labels.some((_, index) => atlas.onlyResets(index))) say("double outline: only resets");
    byId("legend").replaceChildren(...items);
  }

  return { paint, isMode: (mode) => mode === "status" || mode in MEASURES };
})();
