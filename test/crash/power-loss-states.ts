// A command that was recorded, and every state that a power cut may leave of it: of the disk and of the service together.
import { expect } from "vitest";
import type { Ended } from "../support/program.ts";
import { type FileOperation, fingerprintOf, type State, statesAfter, writeImage } from "./power-loss-disk.ts";
import type { PowerScene, PowerStage } from "./power-loss-scenes.ts";
import type { Moment, RewindableService } from "./power-loss-service.ts";
import { type Recording, recordFiles, type Step } from "./power-loss-trace.ts";

export interface CutState extends State {
  readonly moment: Moment;
  /** How the command had ended; absent where the power was lost before. */
  readonly ended: Ended | undefined;
  /** The last step that was made. */
  readonly last: Step | undefined;
}

export interface Recorded {
  readonly scene: PowerScene;
  readonly stage: PowerStage;
  readonly states: readonly CutState[];
  readonly steps: number;
}

export async function record(scene: PowerScene, service: RewindableService): Promise<Recorded> {
  const stage = await scene.stage(service);
  const { value, moments } = await service.record(() =>
    recordFiles(stage.at.folder, (under) => stage.at.spawned(stage.words, { under, input: stage.input })),
  );
  const { ended, steps } = value;
  expect(ended.code, `${scene.name}: ${ended.stderr}`).toBe(stage.code ?? 0);
  const sent = steps.filter(({ kind }) => kind === "sent").length;
  expect(sent, `${scene.name}: requests in the trace`).toBe(moments.length - 1);
  return { scene, stage, states: [...statesOf(value, moments)], steps: steps.length };
}

/** Puts disk and service into a state. */
export async function enter({ image, moment }: CutState, stage: PowerStage, service: RewindableService): Promise<void> {
  await service.rewind(moment);
  writeImage(image, stage.at.folder);
}

/** The states that a cut after each step may leave, each once. */
function* statesOf({ start, steps, ended }: Recording, moments: readonly Moment[]): Generator<CutState> {
  const seen = new Set<string>();
  const operations: FileOperation[] = [];
  let sent = 0;
  let answered = 0;
  for (let done = 0; ; done += 1) {
    const isEnded = done === steps.length;
    const at = { ended: isEnded ? ended : undefined, last: steps[done - 1] };
    for (const state of statesAfter(start, operations)) {
      // A request on its way may have arrived.
      for (let met = answered; met <= sent; met += 1) {
        const moment = moments[met]!;
        const fingerprint = `${fingerprintOf(state.image)} ${moment.state} ${isEnded}`;
        if (seen.has(fingerprint)) continue;
        seen.add(fingerprint);
        const when = isEnded ? "after its end" : `before step ${done + 1}, ${met} requests met`;
        yield { ...state, ...at, how: `${when}: ${state.how}`, moment };
      }
    }
    const step = steps[done];
    if (step === undefined) return;
    if (!("nth" in step)) operations.push(step);
    else if (step.kind === "sent") sent = step.nth;
    else answered = step.nth;
  }
}

/** A recovery that loses its power too: of one state that the first cut left, with nothing lost but what was not done. */
export function secondCut(
  name: string,
  first: PowerScene,
  isIt: (state: Pick<CutState, "last">) => boolean,
): PowerScene {
  return {
    name,
    async stage(service) {
      const { stage, states } = await record(first, service);
      const state = states.find((one) => one.how.endsWith("all is there") && isIt(one));
      if (!state) throw new Error(`${name}: ${first.name} has no such state`);
      await enter(state, stage, service);
      return { ...stage, words: ["journal", "recover"] };
    },
  };
}
