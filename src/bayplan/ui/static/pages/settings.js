// Settings: what this browser stores for itself, and facts about the server.

import { draw, h } from "../dom.js";
import { time } from "../format.js";
import { to } from "../address.js";
import { get } from "../service.js";
import { choice } from "../parts.js";
import { chosenTheme, setTheme, title } from "../shell.js";

/** @param {import("../main.js").Page} page */
export function open({ root, signal }) {
  title("Settings");
  /** @type {Api.Root | null} */
  let about = null;
  const redraw = () =>
    draw(
      root,
      h("h1", { class: "verdict" }, "Settings"),
      h(
        "section",
        { class: "panel" },
        h("dl", { class: "facts roomy" }, setting("Theme", themes(redraw)), setting("Rows", rowHeights(redraw))),
      ),
      h("section", { class: "panel" }, h("h2", null, "Server"), serverFacts(about)),
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
  redraw();
  get("/", {}, signal).then(
    (data) => {
      about = data;
      redraw();
    },
    () => {},
  );
}

/** @param {string} name @param {Node} value */
function setting(name, value) {
  return [h("dt", null, name), h("dd", null, value)];
}

/** @param {() => void} changed */
function themes(changed) {
  return choice(
    "Theme",
    [
      { value: "", text: "system" },
      { value: "light", text: "light" },
      { value: "dark", text: "dark" },
    ],
    chosenTheme(),
    (value) => {
      setTheme(value);
      changed();
    },
  );
}

/** @param {() => void} changed */
function rowHeights(changed) {
  const { dataset } = document.documentElement;
  return choice(
    "Rows",
    [
      { value: "normal", text: "normal" },
      { value: "dense", text: "dense" },
    ],
    dataset.rows ?? "normal",
    (value) => {
      dataset.rows = value;
      localStorage.setItem("bayplan.rows", value);
      changed();
    },
  );
}

/** @param {Api.Root | null} about */
function serverFacts(about) {
  if (!about) return h("p", { class: "faint" }, "–");
  const keys = /** @type {const} */ (["version", "kubernetes_version", "build", "instance"]);
  return h(
    "dl",
    { class: "facts" },
    keys.flatMap((key) => [h("dt", null, key.replace("kubernetes_", "Kubernetes ")), h("dd", { class: "name" }, about[key])]),
    h("dt", null, "started"),
    h("dd", null, `${about.started_at.slice(0, 10)} ${time(about.started_at)} UTC`),
  );
}
