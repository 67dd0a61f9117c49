"use strict";
// States as a graph in layers: nodes with their names, edges with their actions, and clusters that a click opens.
const graph = (() => {
  const { svg } = elements;
  const { content, labels, isMember } = atlas;
  const { layers, spots, nodes, map } = canvas;
  const data = { ...content.graph, labels, parents: content.waysIn, members: content.members };
  /** States that are shown because they were asked for, in clusters that were opened. */
  const wanted = new Set();
  /** The edges that are drawn, by "source target", each with its course. */
  const edges = new Map();
  const RARE = 0.1, NARROW = 560;
  let shown = content.layout;

  /** The outline of a state: round corners are certified, cut ones open, sharp ones set aside. */
  function outline(status, width, height, inset = 0) {
    const [x, y] = [width / 2 - inset, height / 2 - inset], r = Math.max(0, Math.min(9, height / 3) - inset);
    if (status === "certified") {
      return `M${-x + r} ${-y}H${x - r}Q${x} ${-y} ${x} ${-y + r}V${y - r}Q${x} ${y} ${x - r} ${y}H${-x + r}Q${-x} ${y} ${-x} ${y - r}V${-y + r}Q${-x} ${-y} ${-x + r} ${-y}Z`;
    }
    if (status === "open") return `M${-x + r} ${-y}H${x - r}L${x} 0L${x - r} ${y}H${-x + r}L${-x} 0Z`;
    return `M${-x} ${-y}H${x}V${y}H${-x}Z`;
  }

  function drawNode({ index, x, y, width, height, lines }, marks) {
    const status = atlas.statusOf(index), picture = content.pictures[index], parts = [];
    let top = -height / 2 + 4;
    if (picture) {
      const { width: w, height: h } = layering.PICTURE;
      parts.push(svg("image", { href: picture, x: -w / 2, y: top + 2, width: w, height: h, preserveAspectRatio: "xMidYMid meet" }));
      top += h + 4;
    }
    lines.forEach((line, i) => parts.push(svg("text", { class: "name", y: top + 14 + i * layering.LINE, "font-size": 13 }, line)));
    const steps = content.refuted ? "" : isMember(index) ? content.shownSteps[index].toFixed(1) : content.proven ? status : "frontier";
    parts.push(svg("text", { class: "note", y: height / 2 - 6, "font-size": 10 }, [steps, ...marks.keys()].join(" ")));
    spots.set(index, { x, y, half: Math.min(width, height) / 2, width, height });
    const node = canvas.node(index, { x, y }, outline(status, width, height), outline(status, width, height, 3), ...parts);
    if (marks.size) node.querySelector("title").textContent += [...marks].map(([mark, text]) => `\n${mark} ${text}`).join("");
  }

  /** Marks of actions that stay in a state or lead to the initial one, by state. */
  function marksOf({ loops, returns }) {
    const found = new Map();
    for (const [mark, list] of [["↻", loops], ["↩", returns]]) {
      for (const { source, text } of list) found.set(source, (found.get(source) ?? new Map()).set(mark, text));
    }
    return found;
  }

  const points = (corners) => corners.map((corner) => corner.join(" ")).join(" ");

  function edgeElement({ source, target, text, share, path, head, label }, kind = "") {
    const dashes = share < RARE ? " rare" : "";
    const element = svg("g", { class: `edge${dashes}${kind}` }, svg("path", { class: "line", d: path }), svg("polygon", { class: "head", points: points(head) }));
    if (target !== null && !kind) element.dataset.edge = `${source} ${target}`;
    if (target !== null) element.dataset.index = isMember(target) && target !== 0 ? target : source;
    if (!text) return element;
    const shortened = layering.cut(text, layering.LABEL.longest), width = shortened.length * layering.LABEL.character;
    element.append(svg("rect", { class: "edge-ground", x: label[0] - width / 2, y: label[1] - 6, width, height: 12 }),
      svg("text", { class: "edge-name", x: label[0], y: label[1] + 4, "font-size": 11 }, shortened, svg("title", {}, text)));
    return element;
  }

  /** The course of an edge between two states that are shown: as laid out, or a bent line. */
  function course(source, target) {
    const known = edges.get(`${source} ${target}`);
    if (known) return known;
    const from = spots.get(source), to = spots.get(target);
    if (!from || !to || source === target) return null;
    const [dx, dy] = [to.x - from.x, to.y - from.y], bend = 0.12;
    const middle = [(from.x + to.x) / 2 - dy * bend, (from.y + to.y) / 2 + dx * bend];
    const ends = [border(from, middle), middle, border(to, middle)];
    return { source, target, points: ends, path: layering.path(ends), head: layering.head(ends), label: middle };
  }

  /** Where the line from the centre of a state towards a point leaves it. */
  function border({ x, y, width, height }, [px, py]) {
    const [dx, dy] = [px - x, py - y];
    const scale = Math.min(width / 2 / (Math.abs(dx) || 1e-9), height / 2 / (Math.abs(dy) || 1e-9), 1);
    return [x + dx * scale, y + dy * scale];
  }

  function drawCluster({ anchor, size, x, y, width, height }) {
    const said = `${size} states behind ${labels[anchor]}; a click shows more of them`;
    const open = () => { openCluster(anchor); };
    const element = svg("g", { class: "cluster", role: "button", tabindex: 0, "data-anchor": anchor, "aria-label": said, transform: `translate(${x} ${y})` },
      svg("title", {}, said), svg("rect", { x: -width / 2, y: -height / 2, width, height, rx: height / 2 }),
      svg("text", { class: "value", y: 5, "font-size": 13 }, `+${size}`));
    element.addEventListener("click", open);
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open();
    });
    layers.nodes.append(element);
  }

  function drawView(isCut) {
    for (const layer of Object.values(layers)) layer.replaceChildren();
    for (const kept of [spots, nodes, edges]) kept.clear();
    for (const { x, y, width, height } of shown.blocks) {
      layers.ground.append(svg("rect", { class: "block", x: x - width / 2 - 8, y: y - height / 2 - 8, width: width + 16, height: height + 16, rx: 12 }));
    }
    for (const edge of shown.edges) {
      if (edge.target !== null) edges.set(`${edge.source} ${edge.target}`, edge);
      layers.tree.append(edgeElement(edge));
    }
    const marks = marksOf(shown);
    for (const node of shown.nodes) drawNode(node, marks.get(node.index) ?? new Map());
    shown.clusters.forEach(drawCluster);
    canvas.setSize(shown.width, shown.height, isCut);
    map.style.aspectRatio = `${canvas.view.width} / ${canvas.view.height}`;
    const note = elements.byId("undrawn");
    note.textContent = shown.undrawn ? `${elements.number(shown.undrawn)} more transitions between these states are not drawn: choose a state to see its own.` : "";
  }

  function relaid(isCut) {
    shown = layering.view(data, [...wanted], canvas.frame());
    drawView(isCut);
  }

  /** Shows more of the states behind one. */
  function openCluster(anchor) {
    const more = layering.behind(data, anchor, [...wanted]);
    for (const index of more) wanted.add(index);
    relaid(true);
    canvas.redrawn();
    canvas.showSpot(more[0] ?? anchor);
    nodes.get(more[0] ?? anchor)?.focus({ preventScroll: true });
    elements.say(`${more.length} more states are shown behind ${labels[anchor]}.`);
  }

  /** Shows a state, and those on the short way to it, if they are hidden. */
  function show(indices) {
    const hidden = indices.filter((index) => !nodes.has(index));
    if (!hidden.length) return;
    for (const index of hidden) wanted.add(index);
    relaid(true);
    canvas.redrawn();
  }

  /** Draws the graph: as Python laid it out, or anew for a narrow screen. */
  function draw() {
    if (canvas.frame().width < NARROW) relaid(true);
    else drawView(true);
  }

  return { draw, show, isThinned: () => shown.undrawn > 0, course, edgeElement, edges, outline, drawNames: () => {} };
})();
