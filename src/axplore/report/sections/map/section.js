"use strict";
// The controls of the map: search, colours, sliders, zoom, keys; and what happens when a state is chosen.
const drawing = canvas.isGrid ? grid : graph;
atlas.ready.then(() => {
  const { byId, fill, html, number, say } = elements;
  const { content, labels, members } = atlas;
  const { map, nodes, spots } = canvas;
  const colour = byId("colour"), radius = byId("radius"), replay = byId("replay");

  // ---- sliders --------------------------------------------------------------------------------------------------

  const top = Math.ceil(10 * (content.radius + content.epsilon)) / 10;
  fill(radius, { min: 0, max: top, step: top > 20 ? 0.5 : 0.1 }, []).value = top;
  fill(replay, { max: members }, []).value = members;

  function filter() {
    const within = +radius.value, stage = +replay.value;
    const everything = within >= +radius.max;
    const metBy = Math.max(...content.numbers.slice(0, stage));
    const counts = { inside: 0, perhaps: 0, beyond: 0 };
    for (let index = 0; index < labels.length; index++) {
      const isIn = atlas.isMember(index), lower = content.lower[index], upper = content.proven ? content.within[index] : lower;
      const isBeyond = lower > within || (!content.proven && !isIn);
      counts[upper !== null && upper <= within && isIn ? "inside" : isBeyond ? "beyond" : "perhaps"]++;
      const pending = stage < members && index >= stage, node = nodes.get(index);
      node?.classList.toggle("beyond", !everything && isBeyond);
      node?.classList.toggle("pending", pending);
      node?.classList.toggle("unmet", pending && content.numbers[index] > metBy);
    }
    byId("radius-value").textContent = within.toFixed(1);
    byId("replay-value").textContent = `${stage} of ${members}, at step ${number(content.foundAt[stage - 1])}`;
    byId("within").textContent = content.proven
      ? `Within ${within.toFixed(1)} expected steps: ${counts.inside} ${counts.inside === 1 ? "state" : "states"} by upper bounds of policies, ${counts.perhaps} undecided, ${counts.beyond} beyond by lower bounds.`
      : content.refuted ? "" : `Within ${within.toFixed(1)} steps by the explorer’s estimates: ${counts.inside} states; nothing is proven.`;
    for (const branch of canvas.layers.tree.children) {
      for (const name of ["unmet", "beyond", "pending"]) {
        branch.classList.toggle(name, nodes.get(+branch.dataset.index)?.classList.contains(name) ?? false);
      }
    }
    drawing.drawNames();
  }

  let playing = null;
  function play() {
    byId("play").textContent = playing ? "play" : "pause";
    if (playing) {
      clearInterval(playing);
      playing = null;
      return;
    }
    if (+replay.value >= members) replay.value = 1;
    const stride = Math.max(1, Math.round(members / 100));
    playing = setInterval(() => {
      replay.value = Math.min(members, +replay.value + stride);
      filter();
      if (+replay.value >= members) play();
    }, Math.max(60, Math.min(600, 8000 / members)));
  }

  radius.addEventListener("input", () => { filter(); selection.remember(); });
  replay.addEventListener("input", filter);
  byId("play").addEventListener("click", play);
  selection.keep("radius", () => (radius.value === radius.max ? null : radius.value), (value) => { radius.value = value; filter(); });

  // ---- colours --------------------------------------------------------------------------------------------------

  colour.addEventListener("change", () => { colours.paint(colour.value); filter(); selection.remember(); });
  selection.keep("colour", () => (colour.value === "steps" ? null : colour.value), (mode) => {
    if (!colours.isMode(mode)) return;
    colour.value = mode;
    colours.paint(mode);
  });

  // ---- zoom -----------------------------------------------------------------------------------------------------

  byId("zoom-in").addEventListener("click", () => canvas.zoom(0.7));
  byId("zoom-out").addEventListener("click", () => canvas.zoom(1 / 0.7));
  byId("zoom-fit").addEventListener("click", () => canvas.zoom(1e9));
  map.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    canvas.zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, at.x, at.y);
  }, { passive: false });
  let held = null;
  map.addEventListener("pointerdown", (event) => {
    if (event.target.closest(".node, .cluster") || canvas.isWhole()) return;
    held = { x: event.clientX, y: event.clientY };
    map.setPointerCapture(event.pointerId);
    map.classList.add("held");
  });
  map.addEventListener("pointermove", (event) => {
    if (!held) return;
    canvas.pan(event.clientX - held.x, event.clientY - held.y);
    held = { x: event.clientX, y: event.clientY };
  });
  function release() {
    if (!held) return;
    held = null;
    map.classList.remove("held");
    drawing.drawNames();
  }
  map.addEventListener("pointerup", release);
  map.addEventListener("pointercancel", release);

  // ---- a state is chosen ----------------------------------------------------------------------------------------

  /** Marks the chosen state and its policy; returns how many states of the policy are not shown. */
  function mark(index) {
    for (const node of map.querySelectorAll(".node.chosen")) {
      node.classList.remove("chosen");
      node.setAttribute("aria-pressed", "false");
    }
    arrows.clear();
    if (index === null) return 0;
    nodes.get(index)?.classList.add("chosen");
    nodes.get(index)?.setAttribute("aria-pressed", "true");
    arrows.drawOwn(index);
    const met = policyOf(index);
    return met ? arrows.draw(index, met) : 0;
  }

  const policyOf = (index) => (atlas.isMember(index) && index > 0 && atlas.hasPolicy(index) ? atlas.met(index) : null);

  selection.onChange((index) => {
    if (index !== null) drawing.show([index, ...atlas.wholeRoute(index).slice(0, content.limits.shownOnRoute)]);
    const hidden = mark(index);
    if (index === null) {
      byId("panel-title").textContent = "Choose a state";
      byId("panel-body").replaceChildren(html("p", {}, "No state is chosen."));
      drawing.drawNames();
      return;
    }
    const isGoal = atlas.isMember(index) && index > 0;
    byId("panel-title").textContent = isGoal ? `Route to ${labels[index]}` : labels[index];
    byId("panel-body").replaceChildren(...panel.parts(index, policyOf(index)));
    if (hidden) byId("panel-body").append(html("p", {}, `${hidden} more ${hidden === 1 ? "state" : "states"} that the policy may meet ${hidden === 1 ? "has" : "have"} no arrow on the map.`));
    if (nodes.has(index)) rove(index);
    canvas.showSpot(index);
    drawing.drawNames();
    say(`${atlas.describe(index)}. ${content.reasons[index]}`);
  });

  canvas.onRedraw(() => {
    colours.paint(colour.value);
    filter();
    mark(selection.chosen);
  });

  // ---- keys and search ------------------------------------------------------------------------------------------

  function rove(index) {
    for (const node of map.querySelectorAll('.node[tabindex="0"]')) node.setAttribute("tabindex", -1);
    nodes.get(index).setAttribute("tabindex", 0);
  }

  /** The nearest state in a direction; states off to the side count as farther. */
  function neighbour(index, dx, dy) {
    const from = spots.get(index);
    let best = null, least = Infinity;
    for (const [other, to] of spots) {
      const ahead = (to.x - from.x) * dx + (to.y - from.y) * dy;
      const aside = Math.abs((to.x - from.x) * dy) + Math.abs((to.y - from.y) * dx);
      if (ahead <= 0.1 * from.half || aside > 2 * ahead || nodes.get(other).matches(".unmet")) continue;
      if (ahead + 2 * aside < least) [best, least] = [other, ahead + 2 * aside];
    }
    return best;
  }

  const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  map.addEventListener("keydown", (event) => {
    const node = event.target.closest(".node");
    if (!node) return;
    const index = +node.dataset.index;
    const next = event.key === "Home" ? 0 : directions[event.key] ? neighbour(index, ...directions[event.key]) : null;
    if (event.key === "Enter" || event.key === " ") {
      selection.choose(index);
      if (event.key === "Enter") byId("panel").focus();
    } else if (event.key !== "Home" && !directions[event.key]) {
      return;
    }
    event.preventDefault();
    if (next !== null) {
      rove(next);
      nodes.get(next).focus();
    }
  });
  map.addEventListener("click", (event) => {
    const node = event.target.closest(".node");
    if (node) selection.choose(+node.dataset.index);
  });

  function find(text) {
    const wanted = text.trim().toLowerCase();
    const names = labels.map((label) => label.toLowerCase());
    const index = [(name) => name === wanted, (name) => name.startsWith(wanted), (name) => name.includes(wanted)]
      .map((matches) => names.findIndex(matches)).find((found) => found >= 0);
    if (!wanted || index === undefined) say(`There is no state ${text}.`);
    else selection.choose(index);
    byId("search").setAttribute("aria-invalid", String(index === undefined));
  }

  byId("labels").append(...labels.slice(0, content.limits.suggested).map((label) => html("option", { value: label })));
  byId("search-form").addEventListener("submit", (event) => { event.preventDefault(); find(byId("search").value); });

  byId("save-svg").addEventListener("click", () => saving.saveSvg(map));
  byId("save-png").addEventListener("click", () => saving.savePng(map));
  addEventListener("resize", () => drawing.drawNames());

  if (content.refuted) colour.value = "visits"; // of steps nothing is known
  drawing.draw();
  colours.paint(colour.value);
  filter();
});
