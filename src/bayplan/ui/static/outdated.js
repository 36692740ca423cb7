// A note that the cluster has changed since an answer about it. Answers are not computed again by themselves, because each one
// takes the server as long as many decisions.

import { h } from "./dom.js";
import { onReload, subscribe } from "./stream.js";

/** The note of each part, and the newest version of the pods that it has seen. @type {WeakMap<object, { own: AbortController, pods: string | null }>} */
const shown = new WeakMap();

/**
 * A note that is hidden until a pod or a node changes. Another server, or a restarted one, is asked at once.
 * @param {object} part that shows the answer @param {() => void} again asks again @param {AbortSignal} signal
 */
export function outdatedNote(part, again, signal) {
  // Pods that change between the new answer and the first frame after it must not be missed.
  const note = { own: new AbortController(), pods: shown.get(part)?.pods ?? null };
  const { own } = note;
  dropNote(part);
  shown.set(part, note);
  signal.addEventListener("abort", () => own.abort());
  const element = h(
    "div",
    { class: "note wait outdated", own: true, hidden: true, role: "status", "data-test": "outdated" },
    h("span", null, "The cluster has changed since this answer."),
    h("button", { type: "button", class: "button", onclick: again }, "Run again"),
  );
  // The first frame of a topic has the state at the answer. A tab that was hidden gets a first frame again.
  const compare = (/** @type {string | null} */ first) => (/** @type {string} */ state) => {
    first ??= state;
    if (state !== first) element.hidden = false;
  };
  const [pods, nodes] = [compare(note.pods), compare(null)];
  subscribe(
    "pods",
    ({ version }) => {
      note.pods = String(version);
      pods(note.pods);
    },
    own.signal,
  );
  subscribe("nodes:cpu", ({ complete, names, cells, flags }) => nodes(complete ? JSON.stringify([names, cells, flags]) : "changed"), own.signal);
  onReload(() => {
    dropNote(part);
    again();
  }, own.signal);
  return element;
}

/** Drop the note of a part that shows no answer any more. @param {object} part */
export function dropNote(part) {
  shown.get(part)?.own.abort();
  shown.delete(part);
}
