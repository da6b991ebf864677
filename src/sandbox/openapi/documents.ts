// Owns: publication of the machine-readable specifications (§4.5).
import { type Call, jsonAnswer } from "../call.ts";
import { type Answer, notFound } from "../problem.ts";
export function publishCurrent(_call: Call): Answer {
  return jsonAnswer(200, {});
}
export function publishVersion(_call: Call): Answer {
  throw notFound("x");
}
export function publishLegacy(_call: Call): Answer {
  return jsonAnswer(200, {});
}
