// Attempts of another scheduler, which the server read from the result annotations of a pod.

import { h } from "./dom.js";

/**
 * A line that says where the attempts come from; null for attempts of this server's own scheduler.
 * @param {Api.PodPage} data
 */
export function annotationNote(data) {
  if (!data.attempts.at(-1)?.annotated) return null;
  const scheduler = data.pod.scheduler_name || "another scheduler";
  return h(
    "p",
    { class: "faint small", "data-test": "annotated" },
    `Attempts of ${scheduler}, read from the pod's result annotations`,
  );
}

/**
 * The view of a matrix. Annotations have no normalised scores, so weighted ones are shown instead.
 * @template {{ values: string }} View
 * @param {View} view @param {{ annotated?: boolean }} data the matrix @returns {View}
 */
export function withKnownValues(view, data) {
  return data.annotated && view.values === "normalized" ? { ...view, values: "weighted" } : view;
}

/** @param {{ annotated?: boolean }} data the matrix */
export function valueChoices(data) {
  const choices = [
    { value: "normalized", text: "normalised" },
    { value: "weighted", text: "weighted" },
    { value: "raw", text: "raw" },
  ];
  return data.annotated ? choices.slice(1) : choices;
}

/** @param {number | null} weight null: the annotations have only the product */
export function weightText(weight) {
  return weight === null ? "not in the annotations" : `× ${weight}`;
}
