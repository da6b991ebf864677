// The question that each mutant stands behind, before any source is loaded.
const state = { active: 0, uses: 0, most: Number.POSITIVE_INFINITY, seen: undefined as Set<number> | undefined };

/** Thrown in place of a loop without an end. */
class Endless extends Error {}

function isActive(number: number): boolean {
  state.seen?.add(number);
  if (number !== state.active) return false;
  state.uses += 1;
  if (state.uses > state.most) throw new Endless(`mutant ${number} was asked for ${state.uses} times`);
  return true;
}

Object.assign(globalThis, { $m: isActive, $mutation: state });
