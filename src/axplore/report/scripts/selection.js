"use strict";
// The chosen state and the settings of the map, kept in the address, so that they can be linked to and survive a reload.
const selection = (() => {
  const listeners = [], kept = [];
  let chosen = null, restoring = false;

  /** Calls a listener with the chosen state, or null, whenever another is chosen. */
  const onChange = (listener) => { listeners.push(listener); };

  function choose(index) {
    chosen = index;
    for (const listener of listeners) listener(index);
    remember();
  }

  /** Keeps a setting in the address: `read` returns its text, or null for the default; `restore` applies it. */
  const keep = (name, read, restore) => { kept.push({ name, read, restore }); };

  function remember() {
    if (restoring) return;
    const shown = new URLSearchParams();
    for (const { name, read } of kept) if (read() !== null) shown.set(name, read());
    history.replaceState(null, "", shown.size ? `#${shown}` : "#");
  }

  function restore() {
    restoring = true;
    const shown = new URLSearchParams(location.hash.slice(1));
    for (const { name, restore: take } of kept) if (shown.has(name)) take(shown.get(name));
    restoring = false;
  }

  /** Chooses a state that nobody asked for: the address does not mention it. */
  function suggest(index) {
    restoring = true;
    choose(index);
    restoring = false;
  }

  keep("state", () => (chosen === null ? null : atlas.labels[chosen]), (label) => {
    const index = atlas.labels.indexOf(label);
    if (index >= 0) choose(index);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && chosen !== null) choose(null); });

  return { get chosen() { return chosen; }, choose, suggest, onChange, keep, remember, restore };
})();
