// Defects that were found and fixed. Each change names a file, its current text and the defective text, which is as close to
// the original defect as today's sources allow.
export const defects = [
  {
    name: "1 a stored request is sent under another service version",
    changes: [["commands/running/change.ts", "{ serviceVersion: entry?.service_version }", "{}"]],
  },
  {
    name: "2 a rotation whose new client was revoked meanwhile revokes the old one",
    changes: [["operations/rotation.ts", 'if (status === undefined || status === "active") return {', "return {"]],
  },
  {
    name: "3 a client created earlier with the same key counts as lost",
    changes: [
      ["journal/entry.ts", 'return operation === "oauth_client.create" && detail.own_key !== true;', "return false;"],
    ],
  },
  {
    name: "4 prune forgets live clients",
    changes: [["journal/prunable.ts", "aged.has(entry.id) && !isLive(entry)", "aged.has(entry.id)"]],
  },
  {
    name: "5 after 429 the same creation gets another key",
    changes: [["operations/sending.ts", 'return kind === "rate_limited" && details.unsent !== true;', "return false;"]],
  },
  {
    name: "30 a credential that someone revoked by hand is created again",
    changes: [
      ["operations/creation.ts", 'if (wasLost || contract.noun === "key") await assertNotRevoked(contract, work);', ""],
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
      ["operations/rotation.ts", 'if (words !== "" && ', 'if (words !== "" && bench.account.proof !== null && '],
    ],
  },
  {
    name: "51 a rotation typed with other flags continues with the old ones",
    changes: [["operations/rotation.ts", "if (others.length === 0) return;", "return;"]],
  },
  {
    name: "52 the clock of the first command decides which client was created",
    changes: [
      ["operations/orphan.ts", "offset !== null && Math.abs(offset) <= clockSkewMs;", "true;"],
      ["journal/entry.ts", "Date.parse(sent_at)) + (clock_offset_ms ?? 0)", "Date.parse(sent_at))"],
    ],
  },
  {
    name: "53 a secret that is kept elsewhere counts as lost",
    changes: [
      [
        "operations/secret-delivery.ts",
        "const { kept_at, attempted_at = [] } = entry.detail;",
        "const { kept_at, attempted_at = [] } = entry.detail;\n  return undefined;",
      ],
      ["journal/entry.ts", "attemptedPlaces(here, detail).filter((place) => place !== here.place)", "[]"],
    ],
  },
  {
    name: "58 the same request with another organization is a different one",
    changes: [["journal/admission.ts", "if (other === undefined) return;", "return;"]],
  },
  {
    name: "59 a response with the old id: the only client is revoked",
    changes: [
      ["operations/rotation.ts", 'if (newId !== "" && newId !== oldId) return;', "return;"],
      [
        "operations/client.ts",
        "return clientDifferences(made, JSON.parse(entry.request_text) as CreationRequest, { id: entry.resource_id, notIds });",
        "return undefined;",
      ],
    ],
  },
  {
    name: "60 a receipt that differs from the request is done",
    changes: [
      [
        "operations/client.ts",
        "return clientDifferences(made, JSON.parse(entry.request_text) as CreationRequest, { id: entry.resource_id, notIds });",
        "return undefined;",
      ],
    ],
  },
  {
    name: "61 a 404 settles a revocation of unknown outcome",
    changes: [
      [
        "operations/revocation.ts",
        'const stateBefore = isUnknown ? "unknown" :',
        'const stateBefore = failure.kind === "outcome_unknown" ? "unknown" :',
      ],
    ],
  },
  {
    name: "a rotation's own key counts as another entry's (found by this simulation)",
    changes: [["operations/orphan.ts", "(other !== parent || detail.old_key === key.id)", "true"]],
  },
  {
    name: "a kept secret is settled under its predecessor's id (found by this simulation)",
    changes: [
      [
        "operations/secret-delivery.ts",
        "keyDifferences({ id: seen }, request, await formerIds(bench, entry)) ?? entry.detail.differs",
        "entry.detail.differs",
      ],
    ],
  },
  {
    name: "a client that another machine created between two requests counts as lost (found by this simulation)",
    changes: [
      ["journal/entry.ts", 'return operation === "oauth_client.create" && detail.own_key !== true;', "return false;"],
    ],
  },
  {
    name: "an unavailable list lets the only working key be revoked (found by this simulation)",
    changes: [
      [
        "operations/revocation.ts",
        'if (error instanceof Failure && (error.kind === "auth" || error.kind === "not_found")) return undefined;',
        "if (error instanceof Failure) return undefined;",
      ],
    ],
  },
  {
    name: "two replacements of one lost secret are both created (found by this simulation)",
    changes: [
      [
        "operations/recovery.ts",
        'if (by === id && lost?.state !== "done" && lost?.state !== "abandoned") return false;',
        "if (by !== null) return false;",
      ],
    ],
  },
  {
    name: "a key whose secret is kept elsewhere counts as another entry's (found by this simulation)",
    changes: [
      [
        "operations/orphan.ts",
        "others.find((one) => otherPlaces(one, secrets).length > 0",
        "others.find((one) => otherPlaces(one, secrets).length < 0",
      ],
    ],
  },
  {
    name: "a key that a running process is creating counts as another entry's (found by this simulation)",
    changes: [["operations/orphan.ts", "if (await hasHolder(journal, id))", "if (id === undefined)"]],
  },
  {
    name: "a key that was revoked after its proof lets the old one be revoked (found by this simulation)",
    changes: [
      [
        "operations/rotation.ts",
        'const isFresh = made.kind === "delivered" && !detail.overlap_ms && proofIn(detail) === "token exchange";',
        "const isFresh = made.secret !== undefined;",
      ],
    ],
  },
  {
    name: "two simultaneous rotations of a key in place both happen",
    changes: [
      ["operations/in-place.ts", 'if (kind === "new") await assertPrecedence', "if (false) await assertPrecedence"],
    ],
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

  {
    name: "a secret that one of several destinations has counts as lost",
    changes: [
      ["operations/secret-delivery.ts", "if (!isPartlyDelivered(entry) || secrets.isKept(id)) return;", "return;"],
    ],
  },
  // Each of these defects breaks a promise about the order of steps (promises.ts).
  {
    name: "order: a creation is sent before its attempt is on disk",
    changes: [["operations/sending.ts", "attempts: attempts + 1,", "attempts,"]],
  },
  {
    name: "order: a key that may have been created is requested again",
    changes: [["operations/key.ts", "in_flight: true,", "in_flight: false,"]],
  },
  {
    name: "order: the journal does not record where the secret may be kept",
    changes: [
      [
        "operations/sending.ts",
        "detail: { ...before, attempted_at, attempted_by, ...detail },",
        "detail: { ...before, ...detail },",
      ],
    ],
  },
  {
    name: "order: a creation is sent without a reserve for its secret",
    changes: [["operations/client.ts", "await bench.secrets.reserve(lease.entry.id);", ""]],
  },
  {
    name: "order: a key is requested before its destination is ready",
    changes: [
      [
        "operations/key.ts",
        "const place = await reserveDestination(bench, lease, { destination });",
        "const place = await destination.check();",
      ],
    ],
  },
  {
    name: "order: a stored request is sent with other bytes",
    changes: [
      [
        "operations/acts/send.ts",
        "oauthClients.create(entry.request_text, entry.idempotency_key!)",
        "oauthClients.create(entry.request_text.padEnd(90 + entry.attempts), entry.idempotency_key!)",
      ],
    ],
  },
  {
    name: "order: a secret is printed before it is kept",
    changes: [
      [
        "operations/secret-delivery.ts",
        "const isKept = keptBefore || (needsCopy(delivery, secret) && (await tryKeep(delivery, secret)));",
        "const isKept = keptBefore;",
      ],
    ],
  },
  {
    name: "order: an entry is done before its secret was delivered",
    changes: [
      [
        "operations/secret-delivery.ts",
        'const state = refusal === undefined ? "undelivered" : "secret_lost";',
        'const state = refusal === undefined ? "done" : "secret_lost";',
      ],
    ],
  },
  {
    name: "order: one of several destinations is enough",
    changes: [["secrets/several.ts", "if (refusals.length > 0) throw", "if (refusals.length > 1) throw"]],
  },
  {
    name: "order: a kept secret is destroyed before it is delivered",
    changes: [
      [
        "operations/secret-delivery.ts",
        "if (!(isSettled(entry.state) || wasClaimed(entry)) || !bench.secrets.isKept(entry.id)) return;",
        "if (!bench.secrets.isKept(entry.id)) return;",
      ],
    ],
  },
  {
    name: "order: the old one is revoked before the new one is proven",
    changes: [
      [
        "operations/rotation.ts",
        "known && (await creation.prove(bench, lease.entry, child, known).catch(onFailure((failure) => failure)));",
        "known !== undefined;",
      ],
    ],
  },
  {
    name: "order: the old one is revoked before the journal has the proof",
    changes: [
      ["operations/rotation.ts", "await lease.record({ detail: { ...detail, proven, overlap_until } });", ""],
      ["operations/acts/revoke.ts", "if (proof === undefined)", "if (id === undefined)"],
    ],
  },
  {
    name: "order: a revocation is sent before Retry-After",
    changes: [["operations/acts/revoke.ts", "await waitUntilDue(bench, lease.entry);", ""]],
  },
  {
    name: "order: a request is sent after a secret could not be kept",
    changes: [["operations/secret-delivery.ts", "bench.disk.markFailed(reasonOf(error));\n    bench.", "bench."]],
  },
  {
    name: "order: an overlap is not waited for",
    changes: [["operations/rotation.ts", 'const isDue = options.overlap === "end" ||', "const isDue = true ||"]],
  },
  {
    name: "order: --keep-old does not keep the old one",
    changes: [["operations/next.ts", 'if (detail.keep_old === true) return "end";', ""]],
  },
  {
    name: "order: what is lost is revoked before the journal says so",
    changes: [["operations/acts/revoke.ts", "detail: { ...detail, revoking: true }", "detail"]],
  },
  {
    name: "order: a revocation is sent before it is on disk",
    changes: [
      [
        "operations/acts/revoke.ts",
        "await lease.record({ attempts: attempts + 1, resource_id: id,",
        "lease.note({ attempts: attempts + 1, resource_id: id,",
      ],
    ],
  },
  {
    name: "order: the lease of a creation is not released",
    changes: [
      [
        "operations/workbench.ts",
        "    return await work(lease);\n  } finally {\n    await lease.release();",
        "    return await work(lease);\n  } finally {",
      ],
    ],
  },
  {
    name: "order: the reserve is not freed",
    changes: [["operations/secret-delivery.ts", "async () => destination?.release(),", "async () => {},"]],
  },
  {
    name: "order: the space for a kept secret is not freed",
    changes: [["operations/secret-delivery.ts", "async () => secrets.release(id)];", "];"]],
  },
  {
    name: "order: a command sends again before Retry-After",
    changes: [["operations/sending.ts", "retryAfterSeconds: retryAfterOf(answer),", "retryAfterSeconds: undefined,"]],
  },
  {
    name: "order: a later command sends before Retry-After",
    changes: [["operations/sending.ts", "if (leftMs <= 0) return;", "return;"]],
  },
  {
    name: "order: a request is sent after the journal could not be written",
    changes: [["operations/workbench.ts", "    bench.disk.markFailed(why);", ""]],
  },
  {
    name: "order: a request is sent after an interruption",
    changes: [["operations/sending.ts", "if (clock.interruption.aborted) throw clock.interruption.reason;", ""]],
  },
  {
    name: "order: the reserve for a replacement stays (found by this simulation)",
    changes: [
      [
        "operations/creation.ts",
        "await releaseReserved(bench, replacement.entry, destination);\n      throw error;",
        "throw error;",
      ],
    ],
  },
  // Histories of nights.ts reveal these defects.
  {
    name: "actors: a destination is overwritten without a look at its content",
    changes: [
      [
        "operations/acts/overwrite.ts",
        "if (!(await isReplaceable(bench, lease.entry, at, found))) throw occupiedFailure(at);",
        "",
      ],
    ],
  },
  {
    name: "actors: an untrusted entry permits an act",
    changes: [
      ["operations/acts/overwrite.ts", "if (!(await lease.isTrusted())) throw untrusted(lease.entry.id);", ""],
      ["operations/acts/send.ts", "if (!(await lease.isTrusted())) throw untrusted(lease.entry.id);", ""],
    ],
  },
  {
    name: "actors: an overlap ends without another look at the destinations",
    changes: [["operations/acts/revoke.ts", "if (lostFrom.length > 0)", "if (lostFrom.length > 99)"]],
  },
  {
    name: "actors: a recorded --force consents to any content",
    changes: [
      [
        "operations/acts/overwrite.ts",
        "if (ownPlaces.some((place) => isKnown(consentTo(place)))) return true;",
        "if (ownPlaces.some((place) => consentTo(place) !== undefined)) return true;",
      ],
    ],
  },
  {
    name: "actors: two policies with an item of one name share it",
    changes: [
      ["policy/works.ts", "return `${policy}/${kind}/${name}`;", "return `${policy.slice(0, 4)}/${kind}/${name}`;"],
    ],
  },
  {
    name: "actors: another profile of the same name gets the secret",
    changes: [
      [
        "secrets/profile.ts",
        "if (profile.id !== (profileId ?? (this.record.profileId || profile.id)))",
        "if (profile.id === '')",
      ],
      [
        "operations/acts/overwrite.ts",
        "if (!(await isReplaceable(bench, lease.entry, at, found))) throw occupiedFailure(at);",
        'if (at.kind !== "profile" && !(await isReplaceable(bench, lease.entry, at, found))) throw occupiedFailure(at);',
      ],
    ],
  },
  {
    name: "actors: apply revokes a credential that another machine delivered to a command (found by this simulation)",
    changes: [
      [
        "commands/policy/apply-item.ts",
        "if (otherPlaces(entry, secrets).length === 0) return true;",
        "if (entry.id !== '') return true;",
      ],
    ],
  },
  {
    name: "actors: a key that may be another person's is revoked with --yes",
    changes: [
      ["operations/creation.ts", "if (isGuess(lease.entry) || !(isNamed", "if (!(isNamed"],
      [
        "operations/acts/revoke.ts",
        'if (grounds.kind === "secret_lost" && isGuess(entry)) throw uncertainKeyFailure(entry);',
        "",
      ],
    ],
  },
  {
    name: "actors: a profile with any credential counts as having the secret",
    changes: [
      [
        "secrets/profile.ts",
        'return found.is === "text" && hasContentId(found, proof, digests) ? found.text : undefined;',
        'return found.is === "absent" ? undefined : "any";',
      ],
    ],
  },
];
