"use strict";
// The policy of the chosen goal on the map: its most likely route as one line, what it plays elsewhere, and where chance
// may lead instead.
const arrows = (() => {
  const { svg, percent } = elements;
  const { content, outcomes, choice } = atlas;
  const { layers, spots, nodes, isGrid } = canvas;
  const size = content.layout.size;
  /** Cells smaller than this on the screen have no arrows of their own, in pixels. */
  const LEAST_CELL = 20;
  /** Policies that may meet more states than this are drawn along their route only. */
  const MOST_WHOLE = 12;
  const DIRECTIONS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1], west: [-1, 0], east: [1, 0], north: [0, -1], south: [0, 1] };

  /** Draws a policy in the states that it may meet; returns how many of them have no arrow. */
  function draw(goal, met) {
    const way = atlas.wholeRoute(goal);
    return isGrid ? drawOnGrid(goal, met, way) : drawOnGraph(goal, met, way);
  }

  function drawOnGrid(goal, met, way) {
    const indices = [...met.keys()].filter((index) => spots.has(index));
    const isSmall = (2 * size) / canvas.pixel() < LEAST_CELL;
    const drawn = isSmall ? [] : indices.slice(0, content.limits.arrows);
    for (const index of drawn) {
      const action = choice(goal, index, met.get(index));
      if (action === content.reset) drawReset(index);
      else drawMove(index, action, way[way.indexOf(index) + 1]);
    }
    drawRoute(way, isSmall ? 0.5 : 0.16);
    return isSmall ? 0 : Math.max(0, indices.length - content.limits.arrows);
  }

  /** The most likely route as one line. */
  function drawRoute(way, width) {
    const points = way.filter((index) => spots.has(index)).map((index) => spots.get(index));
    if (points.length < 2) return;
    const d = points.map(({ x, y }, i) => `${i ? "L" : "M"}${x} ${y}`).join("");
    for (const [kind, extra] of [["route casing", 0.12], ["route", 0]]) layers.way.append(svg("path", { class: kind, d, "stroke-width": (width + extra) * size }));
    const [from, to] = points.slice(-2), length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
    layers.way.append(head(to.x + dx * 0.45 * size, to.y + dy * 0.45 * size, dx, dy, 0.9 * size));
  }

  // ---- in a graph -------------------------------------------------------------------------------------------------

  /** The route in bold, other outcomes of the policy thin, and what leaves the atlas in the colour of failure. */
  function drawOnGraph(goal, met, way) {
    const steps = new Set(way.slice(1).map((index, i) => `${way[i]} ${index}`));
    const touched = new Set([goal, ...(met.size > MOST_WHOLE ? way : met.keys())]);
    const isLarge = met.size > MOST_WHOLE;
    let hidden = 0;
    for (const [index, step] of met) {
      const action = choice(goal, index, step);
      if (!nodes.has(index) || (isLarge && !way.includes(index))) { hidden++; continue; }
      if (action === content.reset) { drawReset(index); continue; }
      for (const [successor, part] of outcomes(index, action)) {
        touched.add(successor);
        const kind = steps.has(`${index} ${successor}`) ? " way" : atlas.isMember(successor) ? " way other" : " way fail";
        drawOutcome(index, successor, part === 1 ? atlas.actionName(index, action) : `${atlas.actionName(index, action)} ${percent(part)}`, part, kind);
      }
    }
    for (const [index, node] of nodes) node.classList.toggle("off-way", !touched.has(index));
    return hidden;
  }

  function drawOutcome(source, target, text, share, kind) {
    const course = graph.course(source, target);
    if (course) {
      layers.way.append(graph.edgeElement({ ...course, text, share }, kind));
      layers.tree.querySelector(`[data-edge="${source} ${target}"]`)?.classList.add("covered");
    }
    else if (source === target) drawLoop(source, text);
  }

  function drawLoop(index, text) {
    const { x, y, width, height } = spots.get(index), right = x + width / 2, top = y - height / 4;
    layers.way.append(svg("path", { class: "reset", "stroke-width": 1.6, d: `M${right} ${top}c16 -12 16 22 0 ${height / 3}` }, svg("title", {}, `${text}: it stays`)));
  }

  /** The transitions of a state that are not drawn, as faint lines. */
  function drawOwn(index) {
    if (isGrid || !nodes.has(index) || !graph.isThinned()) return;
    const { source, target, share, text } = content.graph.edges;
    source.forEach((from, i) => {
      if (from === target[i] || target[i] === 0 || (from !== index && target[i] !== index) || graph.edges.has(`${from} ${target[i]}`)) return;
      const course = graph.course(from, target[i]);
      if (course) layers.way.prepend(graph.edgeElement({ ...course, text: from === index ? content.graph.texts[text[i]] : "", share: share[i] }, " own"));
    });
  }

  function clear() {
    layers.way.replaceChildren();
    if (isGrid) return;
    for (const node of nodes.values()) node.classList.remove("off-way");
    for (const edge of layers.tree.children) edge.classList.remove("covered");
  }

  // ---- in a grid --------------------------------------------------------------------------------------------------

  function head(x, y, dx, dy, length) {
    const [sx, sy] = [-dy, dx].map((side) => side * length * 0.5);
    const [bx, by] = [x - dx * length, y - dy * length];
    return svg("path", { class: "arrow-head", d: `M${x} ${y}L${bx + sx} ${by + sy}L${bx - sx} ${by - sy}Z` });
  }

  function drawReset(index) {
    const spot = spots.get(index), half = spot.half;
    const x = isGrid ? spot.x : spot.x + spot.width / 2, y = isGrid ? spot.y + 0.18 * half : spot.y - spot.height / 2, r = (isGrid ? 0.42 : 0.4) * half;
    layers.way.append(svg("path", { class: "reset", "stroke-width": Math.max(1, 0.14 * half), d: `M${x + r} ${y}A${r} ${r} 0 1 1 ${x} ${y - r}` }, svg("title", {}, "RESET")));
    layers.way.append(head(x + 0.35 * half, y - r, 1, 0, 0.4 * half));
  }

  /** The direction of an action in a grid: what its name says, or where it tends over all states; null if neither. */
  const tendencies = new Map();
  function tendency(name) {
    const said = DIRECTIONS[name.toLowerCase()];
    if (said) return said;
    if (tendencies.has(name)) return tendencies.get(name);
    // At a wall an action tends elsewhere: such states count only if there are no others.
    const moves = { free: [0, 0, 0], held: [0, 0, 0] };
    for (const index of content.layout.drawn) {
      const action = atlas.isMember(index) ? atlas.actionsOf(index).indexOf(name) : -1;
      const found = action < 0 ? [] : outcomes(index, action);
      const sum = found.some(([successor]) => successor === index) ? moves.held : moves.free;
      for (const [successor, part] of found) {
        const from = spots.get(index), to = spots.get(successor);
        if (to) [to.x - from.x, to.y - from.y, 1].forEach((value, i) => { sum[i] += part * value; });
      }
    }
    const [x, y, total] = moves.free[2] ? moves.free : moves.held;
    const turn = (Math.round(Math.atan2(y, x) / (Math.PI / 4)) * Math.PI) / 4;
    const found = Math.hypot(x, y) > 0.2 * size * total ? [Math.cos(turn), Math.sin(turn)] : null;
    tendencies.set(name, found);
    return found;
  }

  /** In a grid: where an action led as fine lines, and the direction in which it tends as an arrow. */
  function drawMove(index, action, next) {
    const from = spots.get(index), on = spots.get(next);
    for (const [successor, part] of outcomes(index, action)) {
      const to = spots.get(successor);
      if (!to || successor === index) continue;
      const reach = Math.min(1, (0.97 * size) / Math.hypot(to.x - from.x, to.y - from.y));
      layers.way.append(svg("line", { class: "arrow", "stroke-width": 0.03 * size + 0.07 * size * part, "stroke-dasharray": 0.1 * size,
        x1: from.x, y1: from.y, x2: from.x + reach * (to.x - from.x), y2: from.y + reach * (to.y - from.y) }));
    }
    const direction = tendency(atlas.actionName(index, action));
    if (!direction) {
      layers.way.append(svg("circle", { class: "arrow-head", cx: from.x, cy: from.y, r: 0.2 * size }));
      return;
    }
    const [dx, dy] = direction;
    // The line of the route says it already, unless chance and not the action leads along it.
    if (on && Math.sign(Math.round(on.x - from.x)) === Math.round(dx) && Math.sign(Math.round(on.y - from.y)) === Math.round(dy)) return;
    const [tail, neck, tip] = [-0.5 * size, 0.05 * size, 0.5 * size];
    for (const [name, width] of [["arrow casing", 0.26], ["arrow", 0.15]]) {
      layers.way.append(svg("line", { class: name, "stroke-width": width * size, x1: from.x + dx * tail, y1: from.y + dy * tail,
        x2: from.x + dx * neck, y2: from.y + dy * neck }));
    }
    layers.way.append(head(from.x + dx * tip, from.y + dy * tip, dx, dy, 0.55 * size));
  }

  return { draw, drawOwn, clear };
})();
