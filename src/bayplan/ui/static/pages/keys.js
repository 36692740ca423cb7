// Keys: the list of all keys.

import { draw, h } from "../dom.js";
import { KEYS } from "../keyboard.js";
import { title } from "../shell.js";

/** @param {import("../main.js").Page} page */
export function open({ root }) {
  title("Keys");
  const groups = [...new Set(KEYS.map(([group]) => group))];
  draw(
    root,
    h("h1", { class: "verdict", "data-test": "verdict" }, "Keyboard shortcuts"),
    h(
      "div",
      { class: "key-groups" },
      groups.map((group) =>
        h(
          "section",
          { class: "panel", key: group },
          h("h2", null, group),
          h(
            "dl",
            { class: "facts" },
            KEYS.filter(([each]) => each === group).flatMap(([, keys, what]) => [
              h(
                "dt",
                null,
                keys
                  .split(" ")
                  .map((key, at) => [at ? " " : "", h("kbd", null, key)])
                  .flat(),
              ),
              h("dd", null, what),
            ]),
          ),
        ),
      ),
    ),
  );
}
