// Shared by all canvases: laying them out again after a resize, and painting them again when the theme changes.

/**
 * Call a function when the size of an element or the theme of the page changes.
 * @param {Element} element @param {() => void} redraw @param {AbortSignal} signal
 */
export function onResizeOrThemeChange(element, redraw, signal) {
  const resized = new ResizeObserver(redraw);
  resized.observe(element);
  signal.addEventListener("abort", () => resized.disconnect());
  addEventListener("themechange", redraw, { signal });
}

/**
 * Set the size of a canvas in CSS pixels, with as many canvas pixels as the screen has there.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
export function resizeForScreen(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
