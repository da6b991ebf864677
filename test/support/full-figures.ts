// A full run writes its figures to test/figures.json when it is over.
import { collectFigures } from "./figures.mjs";
import { isFull } from "./sample.ts";

export default function keepFigures(): (() => void) | undefined {
  return isFull ? collectFigures() : undefined;
}
