/** Prints what a test tried, and how often. `of` is which of several, such as a scene. */
export function recordFigure(name, values, of) {
  const words = Object.entries(values).map(([what, value]) => `${value} ${what}`);
  console.log(`${of === undefined ? name : `${name}, ${of}`}: ${words.join(", ")}`);
}
