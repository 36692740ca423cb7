// What can't wait for the modules. A classic script: it runs before anything is painted, so that no page flashes in the wrong
// colours, and it asks the server for what the page will show first, while the modules are on their way (service.js takes the answers).
// All later code may use the browser's storage without a thought for browsers that refuse it.
(function () {
  // A browser may keep nothing for us. What is chosen or written then holds for as long as the page is open.
  /** @type {("localStorage" | "sessionStorage")[]} */ (["localStorage", "sessionStorage"]).forEach(function (name) {
    try {
      window[name].getItem("");
    } catch {
      /** @type {Map<string, string>} */
      var kept = new Map();
      Object.defineProperty(window, name, {
        value: {
          getItem: (/** @type {string} */ key) => kept.get(key) ?? null,
          setItem: (/** @type {string} */ key, /** @type {string} */ value) => void kept.set(key, value),
          removeItem: (/** @type {string} */ key) => void kept.delete(key),
        },
      });
    }
  });
  var chosen = localStorage.getItem("bayplan.theme");
  document.documentElement.dataset.rows = localStorage.getItem("bayplan.rows") || "normal";
  var token = sessionStorage.getItem("bayplan.token");
  // The active theme: the chosen one, or that of the system; updated when either changes.
  var dark = matchMedia("(prefers-color-scheme: dark)");
  function show() {
    var theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("themechange"));
  }
  show();
  dark.addEventListener("change", show);
  addEventListener("themechosen", function (event) {
    chosen = event.detail;
    show();
  });

  var place = location.pathname.replace(/^\/ui/, "").replace(/\/+$/, "") || "/";
  var asked = new URLSearchParams(location.search);
  /** @type {string[]} */
  var addresses = [];
  if (place === "/" || place === "/nodes") {
    addresses.push("/overview");
    // Only a cluster of many nodes is drawn as cells, but whether this is one is known too late.
    if (!asked.get("metric") && !asked.get("by")) addresses.push("/nodes/cells?metric=cpu&by=zone");
  }
  if (place === "/pods") {
    var wanted = new URLSearchParams();
    ["q", "status", "reason", "namespace", "node", "priority", "workload", "sort"].forEach(function (name) {
      var value = asked.get(name) || (name === "sort" ? "status" : "");
      if (value) wanted.set(name, value);
    });
    addresses.push("/pods?" + wanted + "&offset=0&limit=100&facets=1");
  }
  var pod = /^\/pods\/[^/]+\/[^/]+$/.test(place);
  if (pod && !asked.get("run")) addresses.push(place);
  if (pod && !String(asked)) addresses.push(place + "/attempts/latest/matrix?form=columns&limit=10000");

  /** @type {Record<string, string>} */
  var headers = { Accept: "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  /** @type {Map<string, Promise<Response>>} */
  var answers = new Map();
  addresses.forEach(function (address) {
    var answer = fetch("/bayplan/v1" + address, { headers: headers, cache: "no-cache" });
    // The consumer of the answer handles a failure; there may be none.
    answer.catch(function () {});
    answers.set("/bayplan/v1" + address, answer);
  });
  window.earlyAnswers = answers;
})();
