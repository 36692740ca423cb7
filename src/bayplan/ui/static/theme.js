// Sets the theme before anything is painted, so that no page flashes in the wrong colours. A classic script: modules come too late.
(function () {
  var theme = null;
  try {
    theme = localStorage.getItem("bayplan.theme");
    document.documentElement.dataset.rows = localStorage.getItem("bayplan.rows") || "normal";
  } catch (refused) {
    // A browser that keeps nothing for us gets the theme of the system.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
