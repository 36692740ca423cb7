// What all canvases need: to be laid out again with their size, and painted in the colours of the current theme.

/**
 * Call a function when an element has another size, or the page another theme.
 * @param {Element} element @param {() => void} redraw @param {AbortSignal} signal
 */
export function onResizeOrThemeChange(element, redraw, signal) {
  const resized = new ResizeObserver(redraw);
  resized.observe(element);
  signal.addEventListener("abort", () => resized.disconnect());
  addEventListener("themechange", redraw, { signal });
}

/**
 * Give a canvas as many pixels as the screen has for its size in those of the page.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
export function resizeForScreen(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
