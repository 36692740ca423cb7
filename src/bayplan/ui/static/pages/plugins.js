// Plugins: which ones are there, where do they work, and what went wrong in them?

import { h } from "../dom.js";
import { count, counted, time } from "../format.js";
import { to } from "../address.js";
import { get, put } from "../service.js";
import { onReturn } from "../stream.js";
import { badge, copyMenu, perform } from "../parts.js";
import { filled } from "../states.js";
import { title } from "../shell.js";

/** @param {import("../main.js").Page} page */
export function open({ root, signal }) {
  title("Plugins");
  const body = h("div", { class: "stack" });
  root.append(body);
  /** @type {() => Promise<void>} */
  const load = filled(
    body,
    () => get("/plugins", {}, signal),
    (data) => parts(Array.isArray(data) ? data : data.items, load),
    { signal, lines: 10 },
  );
  void load();
  onReturn(load, signal);
  const timer = setInterval(() => {
    if (!document.hidden) void load();
  }, 3000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** @param {any[]} plugins @param {() => unknown} again */
function parts(plugins, again) {
  const failed = plugins.filter((plugin) => plugin.failures?.length);
  const custom = plugins.filter((plugin) => plugin.file);
  const words = failed.length
    ? `${counted(failed.length, "plugin")} failed: ${failed.map((plugin) => plugin.name).join(", ")}`
    : `${counted(plugins.length, "plugin")}${custom.length ? `, ${count(custom.length)} from files` : ""}; none failed`;
  const reload = () =>
    void perform("Reload", async () => {
      await put("POST", "/plugins/reload");
      await again();
      return "Plugin files read again; waiting pods are tried again.";
    });
  return [
    h("p", { class: "crumbs" }, h("a", { href: to("config") }, "Configuration"), " / Plugins"),
    h(
      "div",
      { class: "head" },
      h("h1", { class: "verdict", "data-test": "verdict" }, words),
      h(
        "button",
        {
          type: "button",
          class: "button",
          "data-test": "reload",
          title: "Read the files of custom plugins again",
          onclick: reload,
        },
        "Reload files",
      ),
      copyMenu({ json: "/bayplan/v1/plugins" }),
    ),
    ...failed.map((plugin) =>
      h(
        "section",
        { class: "panel", key: `failed ${plugin.name}` },
        h("div", { class: "row" }, h("h2", { class: "grow" }, plugin.name), badge("error", "failed")),
        plugin.failures
          .slice(-5)
          .map((/** @type {any} */ failure, /** @type {number} */ at) =>
            h(
              "details",
              { key: at, open: at === plugin.failures.length - 1 || null },
              h(
                "summary",
                null,
                `${time(failure.at)} ${failure.point}: `,
                h("span", { class: "bad-text" }, failure.exception),
                failure.count > 1 ? ` (${count(failure.count)} times)` : "",
              ),
              h("pre", { class: "code short", tabindex: 0 }, failure.traceback ?? failure.exception),
            ),
          ),
      ),
    ),
    h(
      "table",
      { class: "list panel wide", "data-test": "plugins" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Plugin", "Works at", "From", "Failures", "Documentation"].map((text) =>
            h("th", { scope: "col", key: text, class: text === "Failures" ? "right" : null }, text),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        plugins.map((plugin) =>
          h(
            "tr",
            { key: plugin.name },
            h("th", { scope: "row" }, plugin.name),
            h("td", { class: "wrap" }, (plugin.points ?? []).join(", ")),
            h("td", { class: "wrap name" }, plugin.file || (plugin.built_in === false ? "installed" : "built in")),
            h(
              "td",
              { class: `right figure${plugin.failures?.length ? " bad-text" : " faint"}` },
              count(plugin.failures?.length ?? 0),
            ),
            h(
              "td",
              null,
              plugin.documentation
                ? h("a", { href: plugin.documentation, rel: "noopener noreferrer", target: "_blank" }, "what it does")
                : "–",
            ),
          ),
        ),
      ),
    ),
  ];
}
