// Settings: what this browser keeps for itself; and what the server is.

import { draw, h } from "../dom.js";
import { time } from "../format.js";
import { to } from "../address.js";
import { get } from "../service.js";
import { choice } from "../parts.js";
import { chosenTheme, setTheme, title } from "../shell.js";

/** @param {import("../main.js").Page} page */
export function open({ root, signal }) {
  title("Settings");
  /** @type {any} */
  let about = null;
  const redraw = () => {
    const { rows = "normal" } = document.documentElement.dataset;
    draw(
      root,
      h("h1", { class: "verdict" }, "Settings"),
      h(
        "section",
        { class: "panel" },
        h(
          "dl",
          { class: "facts roomy" },
          h("dt", null, "Theme"),
          h(
            "dd",
            null,
            choice(
              "Theme",
              [
                { value: "", text: "system" },
                { value: "light", text: "light" },
                { value: "dark", text: "dark" },
              ],
              chosenTheme(),
              (value) => {
                setTheme(value);
                redraw();
              },
            ),
          ),
          h("dt", null, "Rows"),
          h(
            "dd",
            null,
            choice(
              "Rows",
              [
                { value: "normal", text: "normal" },
                { value: "dense", text: "dense" },
              ],
              rows,
              (value) => {
                document.documentElement.dataset.rows = value;
                localStorage.setItem("bayplan.rows", value);
                redraw();
              },
            ),
          ),
        ),
      ),
      h(
        "section",
        { class: "panel" },
        h("h2", null, "Server"),
        about
          ? h(
              "dl",
              { class: "facts" },
              ["version", "kubernetes_version", "build", "instance"].flatMap((key) => [
                h("dt", null, key.replace("_", " ")),
                h("dd", { class: "name" }, String(about[key] ?? "–")),
              ]),
              h("dt", null, "started"),
              h("dd", null, `${String(about.started_at ?? "").slice(0, 10)} ${time(about.started_at)} UTC`),
            )
          : h("p", { class: "faint" }, "–"),
      ),
      h(
        "p",
        null,
        h("a", { href: to("keys") }, "Keys"),
        " · ",
        h("a", { href: "/bayplan/v1/openapi.json", target: "_blank" }, "OpenAPI"),
        " · ",
        h("a", { href: to("plugins") }, "Plugins"),
      ),
    );
  };
  redraw();
  get("/", {}, signal).then(
    (data) => {
      about = data;
      redraw();
    },
    () => {},
  );
}
