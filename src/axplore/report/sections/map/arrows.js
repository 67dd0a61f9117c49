"use strict";
// The policy of the chosen goal as arrows on the map.
const arrows = (() => {
  const { svg } = elements;
  const { content, outcomes, choice } = atlas;
  const { layers, spots, isGrid, size } = canvas;

  /** Draws the actions of a policy in the states that it may meet; returns how many of them have no arrow. */
  function draw(goal, met) {
    const indices = [...met.keys()].filter((index) => spots.has(index));
    for (const index of indices.slice(0, content.limits.arrows)) {
      const action = choice(goal, index, met.get(index));
      if (action === content.reset) drawReset(index);
      else if (isGrid) drawMove(index, action);
      else for (const [successor, part] of outcomes(index, action)) drawArrow(index, successor, part);
    }
    return Math.max(0, indices.length - content.limits.arrows);
  }

  function head(x, y, dx, dy, length) {
    const [sx, sy] = [-dy, dx].map((side) => side * length * 0.5);
    const [bx, by] = [x - dx * length, y - dy * length];
    return svg("path", { class: "arrow-head", d: `M${x} ${y}L${bx + sx} ${by + sy}L${bx - sx} ${by - sy}Z` });
  }

  function drawReset(index) {
    const { x } = spots.get(index), y = spots.get(index).y + (isGrid ? 0.18 * size : 0), r = (isGrid ? 0.42 : 0.5) * size;
    layers.way.append(svg("path", { class: "reset", "stroke-width": Math.max(1, 0.14 * size), d: `M${x + r} ${y}A${r} ${r} 0 1 1 ${x} ${y - r}` }));
    layers.way.append(head(x + 0.35 * size, y - r, 1, 0, 0.4 * size));
  }

  /** The direction in which an action tends in a grid, over all states and rounded to an eighth of a turn; or null. */
  const tendencies = new Map();
  function tendency(name) {
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
  function drawMove(index, action) {
    const from = spots.get(index);
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
    const [tail, neck, tip] = [-0.5 * size, 0.05 * size, 0.5 * size];
    for (const [name, width] of [["arrow casing", 0.26], ["arrow", 0.15]]) {
      layers.way.append(svg("line", { class: name, "stroke-width": width * size, x1: from.x + dx * tail, y1: from.y + dy * tail,
        x2: from.x + dx * neck, y2: from.y + dy * neck }));
    }
    layers.way.append(head(from.x + dx * tip, from.y + dy * tip, dx, dy, 0.55 * size));
  }

  function drawArrow(index, successor, part) {
    const from = spots.get(index), to = spots.get(successor);
    if (!to || part < 0.01) return;
    const width = Math.max(0.8, Math.min(4, 0.2 * size) * Math.sqrt(part));
    const opacity = 0.35 + 0.65 * part;
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    if (length < 1) {
      const r = 0.8 * size;
      layers.way.append(svg("circle", { class: "reset", "stroke-width": width, "stroke-opacity": opacity, cx: from.x + r, cy: from.y - r, r }));
      return;
    }
    const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
    const bend = 0.12 * length; // so that arrows there and back do not coincide
    const [mx, my] = [(from.x + to.x) / 2 - dy * bend, (from.y + to.y) / 2 + dx * bend];
    const end = Math.hypot(to.x - mx, to.y - my);
    const [ux, uy] = [(to.x - mx) / end, (to.y - my) / end];
    const tip = Math.min(1.15 * size + 1, 0.6 * end), point = Math.max(4, 3 * width);
    const [tx, ty] = [to.x - ux * tip, to.y - uy * tip];
    layers.way.append(svg("path", { class: "arrow", "stroke-width": width, "stroke-opacity": opacity,
      d: `M${from.x} ${from.y}Q${mx} ${my} ${tx - ux * point * 0.8} ${ty - uy * point * 0.8}` }));
    const tipElement = head(tx, ty, ux, uy, point);
    tipElement.setAttribute("fill-opacity", opacity);
    layers.way.append(tipElement);
  }

  return { draw, clear: () => layers.way.replaceChildren() };
})();
