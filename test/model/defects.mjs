// Defects that were found and fixed, each with what the sources said before, as near as they still can say it: file, what it
// says now, what it said.
export const defects = [
  {
    name: "1 a stored request is sent under another service version",
    changes: [["commands/running/change.ts", "{ serviceVersion: entry?.service_version }", "{}"]],
  },
  {
    name: "2 a rotation whose new client was revoked meanwhile revokes the old one",
    changes: [["changes/overlap.ts", 'if (status === undefined || status === "active") return;', "return;"]],
  },
  {
    name: "3 a client that was made before, with the same key, is taken for lost",
    changes: [["changes/delivery-recovery.ts", "return detail.own_key !== true;", "return false;"]],
  },
  {
    name: "4 prune forgets live clients",
    changes: [["journal/prunable.ts", "aged.has(entry.id) && !isLive(entry)", "aged.has(entry.id)"]],
  },
  {
    name: "5 after 429 the same creation gets another key",
    changes: [["changes/sending.ts", 'return kind === "rate_limited" && details.unsent !== true;', "return false;"]],
  },
  {
    name: "30 what somebody revoked on purpose is made again",
    changes: [
      ["changes/oauth-client/replace.ts", "if (begun === undefined) await assertClientNotRevoked(bench, lease);", ""],
    ],
  },
  {
    name: "48 one destination takes two secrets",
    changes: [
      [
        "commands/journal/taken-places.ts",
        "const refuse = (): void => {",
        "const refuse = (): void => {\n      return;",
      ],
    ],
  },
  {
    name: "50 without a token endpoint a rotation needs no proof",
    changes: [
      [
        "changes/overlap.ts",
        "if (await options.mayRevokeUnproven(lease.entry))",
        "if (bench.account.proof === null || (await options.mayRevokeUnproven(lease.entry)))",
      ],
    ],
  },
  {
    name: "51 a rotation typed with other flags goes on with the old ones",
    changes: [["changes/overlap.ts", "if (others.length === 0) return;", "return;"]],
  },
  {
    name: "52 the clock of the first command decides what was made",
    changes: [
      [
        "changes/access-key/recover.ts",
        "return clock_offset_ms !== null && Math.abs(clock_offset_ms) <= clockSkewMs;",
        "return true;",
      ],
      ["changes/workbench.ts", "Date.parse(created_at) + (clock_offset_ms ?? 0)", "Date.parse(created_at)"],
    ],
  },
  {
    name: "53 a secret that is kept elsewhere is taken for lost",
    changes: [
      [
        "changes/delivery-recovery.ts",
        "const { kept_at } = entry.detail;",
        "const { kept_at } = entry.detail;\n  return;",
      ],
      ["changes/workbench.ts", "(detail.attempted_at ?? []).filter((place) => place !== here)", "[]"],
    ],
  },
  {
    name: "58 with another organization the same request is another one",
    changes: [["journal/admission.ts", "if (other === undefined) return;", "return;"]],
  },
  {
    name: "59 an answer with the old id: the only one is revoked",
    changes: [
      ["changes/overlap.ts", 'if (newId !== "" && newId !== oldId) return;', "return;"],
      [
        "changes/oauth-client/create.ts",
        "return clientDifferences(client, request, { id: resource_id, notIds: this.#formerIds });",
        "return undefined;",
      ],
    ],
  },
  {
    name: "60 a receipt that is not what was asked for is done",
    changes: [
      [
        "changes/oauth-client/create.ts",
        "return clientDifferences(client, request, { id: resource_id, notIds: this.#formerIds });",
        "return undefined;",
      ],
    ],
  },
  {
    name: "61 a 404 settles a revocation of unknown outcome",
    changes: [
      [
        "changes/revocation.ts",
        "const isSettled = !mayHaveArrived;",
        'const isSettled = error.kind !== "outcome_unknown";',
      ],
    ],
  },
  {
    name: "a rotation's own key is taken for another entry's (found by this simulation)",
    changes: [["changes/access-key/recover.ts", "(other !== parent || detail.old_key === key.id)", "true"]],
  },
  {
    name: "a kept secret is settled under the id of what it replaces (found by this simulation)",
    changes: [
      [
        "changes/delivery-recovery.ts",
        "keyDifferences({ id: seen }, request, await formerIds(bench, entry)) ?? entry.detail.differs",
        "entry.detail.differs",
      ],
    ],
  },
  {
    name: "a client that another machine made between two requests is taken for lost (found by this simulation)",
    changes: [["changes/delivery-recovery.ts", "return detail.own_key !== true;", "return false;"]],
  },
  {
    name: "a list that cannot be had now lets the only key that works be revoked (found by this simulation)",
    changes: [
      [
        "changes/revocation.ts",
        'if (error instanceof Failure && (error.kind === "auth" || error.kind === "not_found")) return undefined;',
        "if (error instanceof Failure) return undefined;",
      ],
    ],
  },
  {
    name: "two replacements of one lost secret are both made (found by this simulation)",
    changes: [["changes/recovery.ts", "if (other !== undefined) return refuseReplacement(bench, lease, other);", ""]],
  },
  {
    name: "a key whose secret is kept elsewhere is taken for another entry's (found by this simulation)",
    changes: [
      [
        "changes/access-key/recover.ts",
        "others.find((one) => otherPlaces(one, secrets.place).length > 0",
        "others.find((one) => otherPlaces(one, secrets.place).length < 0",
      ],
    ],
  },
  {
    name: "a key that a running process is creating is taken for another entry's (found by this simulation)",
    changes: [["changes/access-key/recover.ts", "if (await isWorkedOn(journal, id))", "if (id === undefined)"]],
  },
  {
    name: "a key that was proven before someone revoked it lets the old one be revoked (found by this simulation)",
    changes: [
      ["changes/overlap.ts", "watched.secret !== undefined && !isProvenBefore &&", "watched.secret !== undefined &&"],
    ],
  },
  {
    name: "two rotations of a key in place at the same time both happen",
    changes: [["changes/access-key/rotate.ts", 'const first = kind === "new" ?', "const first = false ?"]],
  },
  {
    name: "an earlier rotation in place is sent again after a later one",
    changes: [
      [
        "journal/rotations.ts",
        "return all.find((later) => later.id > entry.id &&",
        "return all.find((later) => false &&",
      ],
    ],
  },
];
