// Records a command, and lists the states of the disk and the service after a kill before each step, and a selection of those after
// a power cut (`statesAfter`).
import { expect } from "vitest";
import type { Ended } from "../support/program.ts";
import {
  type FileOperation,
  fingerprintOf,
  type Image,
  imageAfter,
  type State,
  statesAfter,
  writeImage,
} from "./power-loss-disk.ts";
import type { PowerScene, PowerStage } from "./power-loss-scenes.ts";
import type { Moment, RewindableService } from "../support/rewindable-service.ts";
import { type Recording, recordFiles, type Step } from "./power-loss-trace.ts";

export interface CutState extends State {
  readonly moment: Moment;
  readonly ended: Ended | undefined;
  readonly last: Step | undefined;
  readonly operations: readonly FileOperation[];
}

export interface Recorded {
  readonly scene: PowerScene;
  readonly stage: PowerStage;
  readonly start: Image;
  readonly states: readonly CutState[];
  readonly steps: number;
}

export async function record(scene: PowerScene, service: RewindableService): Promise<Recorded> {
  const stage = await scene.stage(service);
  const { value, moments } = await service.record(() =>
    recordFiles(
      stage.at.folder,
      (under) => stage.at.spawned(stage.words, { under, input: stage.input }),
      stage.after?.image,
    ),
  );
  const { ended, steps } = value;
  expect(ended.code, `${scene.name}: ${ended.stderr}`).toBe(stage.code ?? 0);
  const sent = steps.filter(({ kind }) => kind === "sent").length;
  expect(sent, `${scene.name}: requests in the trace`).toBe(moments.length - 1);
  return {
    scene,
    stage,
    start: stage.after?.start ?? value.start,
    states: [...statesOf(value, { moments, after: stage.after })],
    steps: steps.length,
  };
}

export async function enter(
  { image, moment }: Pick<CutState, "image" | "moment">,
  stage: Pick<PowerStage, "at">,
  service: RewindableService,
): Promise<void> {
  await service.rewind(moment);
  writeImage(image, stage.at.folder);
}

function* statesOf(
  { start: image, steps, ended }: Recording,
  { moments, after }: { readonly moments: readonly Moment[]; readonly after: PowerStage["after"] },
): Generator<CutState> {
  const seen = new Set<string>();
  const sameState = moments.map(({ state }) => moments.findIndex((other) => other.state === state));
  const start = after?.start ?? image;
  const operations: FileOperation[] = [...(after?.operations ?? [])];
  const places = placesOf(steps, moments);
  const sent = new Set<number>();
  let answered = 0;
  for (let done = 0; ; done += 1) {
    const isEnded = done === steps.length;
    const at = { ended: isEnded ? ended : undefined, last: steps[done - 1], operations: [...operations] };
    const rest = `${isEnded} ${isSecretSynced({ operations })}`;
    for (const state of statesAfter(start, operations)) {
      const disk = fingerprintOf(state.image);
      // At the cut, the service has handled the answered requests, and perhaps some in flight, in the recorded order.
      for (let received = answered; received === answered || sent.has(received); received += 1) {
        const moment = moments[received]!;
        const fingerprint = `${disk} ${sameState[received]} ${rest}`;
        if (seen.has(fingerprint)) continue;
        seen.add(fingerprint);
        const when = isEnded ? "after its end" : `before step ${done + 1}, ${received} requests received`;
        yield { ...state, ...at, how: `${when}: ${state.how}`, moment };
      }
    }
    const step = steps[done];
    if (step === undefined) return;
    if (!("nth" in step)) operations.push(step);
    else if (step.kind === "sent") sent.add(places.get(step.nth)!);
    else answered = Math.max(answered, places.get(step.nth)!);
  }
}

export interface KilledState extends Omit<CutState, "operations"> {
  /** The step before which the process was killed, from 1. */
  readonly step: number;
}

/** The different states that a kill before each step can leave. A call that changes nothing adds no state. */
export function* killedStates(
  { start, steps, ended }: Recording,
  moments: readonly Moment[],
): Generator<KilledState, void> {
  const seen = new Set<string>();
  const sameState = moments.map(({ state }) => moments.findIndex((other) => other.state === state));
  const places = placesOf(steps, moments);
  const sent = new Set<number>();
  let image = start;
  let answered = 0;
  for (let done = 0; done <= steps.length; done += 1) {
    const isEnded = done === steps.length;
    const disk = fingerprintOf(image);
    for (let received = answered; received === answered || sent.has(received); received += 1) {
      const moment = moments[received]!;
      const fingerprint = `${disk} ${sameState[received]} ${isEnded}`;
      if (seen.has(fingerprint)) continue;
      seen.add(fingerprint);
      const how = isEnded ? "after its end" : `killed before step ${done + 1}, ${received} requests received`;
      yield { image, moment, how, ended: isEnded ? ended : undefined, last: steps[done - 1], step: done + 1 };
    }
    const step = steps[done];
    if (step === undefined) return;
    if (!("nth" in step)) image = imageAfter(image, step);
    else if (step.kind === "sent") sent.add(places.get(step.nth)!);
    else answered = Math.max(answered, places.get(step.nth)!);
  }
}

/** Maps each request to its moment, because the service may handle simultaneous requests in another order. */
function placesOf(steps: readonly Step[], moments: readonly Moment[]): Map<number, number> {
  const places = new Map<number, number>();
  for (const step of steps) {
    if (step.kind !== "answered") continue;
    const place = moments.findIndex(({ requestId }) => requestId !== undefined && requestId === step.requestId);
    if (place < 0) throw new Error(`the response to request ${step.nth} is none of the service's`);
    places.set(step.nth, place);
  }
  return places;
}

/**
 * Cuts the power during a command after a killed command, whose unsynced operations may still be lost.
 * @param isKill true for the state in which the first command is killed
 * @param words "again" to repeat the killed command; the default is `journal recover`
 */
export function afterKill(
  { name, first, words }: { readonly name: string; readonly first: PowerScene; readonly words?: "again" },
  isKill: (state: Pick<CutState, "last">) => boolean,
): PowerScene {
  return {
    name,
    async stage(service) {
      const { stage, states, start } = await record(first, service);
      const state = states.find((one) => one.how.endsWith("all is there") && isKill(one));
      if (!state) throw new Error(`${name}: ${first.name} has no such state`);
      await enter(state, stage, service);
      const after = { start, image: state.image, operations: state.operations };
      return { ...stage, words: words === "again" ? stage.words : ["journal", "recover"], after };
    },
  };
}

/** True if the secret's content is synced, whatever name its file has. */
export function isSecretSynced({ operations }: Pick<CutState, "operations">): boolean {
  const cut = operations.findIndex((one) => one.kind === "cut" && one.length < 1000);
  if (cut < 0) return false;
  const { node } = operations[cut] as { readonly node: number };
  return operations.slice(cut).some((one) => one.kind === "sync" && one.node === node);
}
