/** Prints a test's figures. `of` names a part of the test, such as a scene. */
export function recordFigure(name, values, of) {
  const words = Object.entries(values).map(([what, value]) => `${value} ${what}`);
  console.log(`${of === undefined ? name : `${name}, ${of}`}: ${words.join(", ")}`);
}
