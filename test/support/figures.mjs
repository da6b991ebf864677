/** Prints how many cases a test played. `of` distinguishes several, such as scenes. */
export function recordFigure(name, values, of) {
  const words = Object.entries(values).map(([what, value]) => `${value} ${what}`);
  console.log(`${of === undefined ? name : `${name}, ${of}`}: ${words.join(", ")}`);
}
