import {
  asksCatalog,
  CATALOG_NAMES,
  DISCOVER,
  hasCatalog,
  INVOKE,
  SCHEMA,
} from '../../core/catalog/catalog.js';
import { answerQuestion, nameAsked } from '../../core/catalog/catalog-answers.js';
import { sha256Hex } from '../../core/digest.js';
import { canonicalJson, type JsonObject } from '../../core/json.js';
import type { AskedCall, CallProblem } from '../../core/transcript/messages.js';
import type { ModelReply } from '../../models/model.js';
import { parseArguments, unknownTool } from '../../tools/arguments/arguments.js';
import { checkArguments } from '../../tools/arguments/check-arguments.js';
import { describeCall } from '../../tools/describe-call.js';
import { readInvokedCall } from '../../tools/arguments/invoked-call.js';
import { wellFormed } from '../../tools/utf8.js';
import type { PinnedAgent } from '../definitions.js';
import { pinnedInput, unchanged } from '../tool/pinned-input.js';
import { CHECK_GIVEN_UP, isSlowTool } from './slow-check.js';

/** A call with its arguments whole, before anything of it is kept elsewhere. */
export type ReadCall = Omit<AskedCall, 'arguments' | 'blob'> & { readonly canonical: string };

interface Reading {
  /** Tools whose check may block are not checked any more: their calls count as not checkable. */
  readonly givenUp: boolean;
}

/**
 * A call as the model asked for it, checked and digested. One that came by `invoke_tool` is from here
 * on the call of the real tool: its effect, schema, key and summary are that tool's.
 */
export async function readCall(
  asked: ModelReply['calls'][number],
  pinned: PinnedAgent,
  how: Reading,
): Promise<ReadCall> {
  // A name that no provider would take back must not spoil every later request.
  const name = asked.name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || '_';
  const parsed = parseArguments(asked.arguments);
  if (!parsed.ok) {
    // What is no JSON would be refused by servers that read it back; so it travels as a text.
    const canonical = JSON.stringify({ unreadable: wellFormed(asked.arguments.slice(0, 2_000)) });
    const digest = sha256Hex(wellFormed(asked.arguments));
    return { name, canonical, digest, problem: parsed.problem };
  }
  const { value } = parsed;
  if (name === INVOKE && hasCatalog(pinned.definition)) {
    return await readInvoked(value, pinned, how);
  }
  return { ...told(name, value), ...(await checkCall(asked.name, value, pinned, how)) };
}

/** What cannot be made a call of a tool that there is stays as it was asked, with what is wrong. */
async function readInvoked(
  value: JsonObject,
  pinned: PinnedAgent,
  how: Reading,
): Promise<ReadCall> {
  const invoked = readInvokedCall(value);
  if (!invoked.ok) return { ...told(INVOKE, value), problem: invoked.problem };
  const { name } = invoked;
  if (!pinned.definition.tools.some((tool) => tool.name === name)) {
    const problem = CATALOG_NAMES.includes(name)
      ? ({
          type: 'invalid_arguments',
          message: `Call ${name} by itself, without ${INVOKE}.`,
        } as const)
      : missing(name, pinned);
    return { ...told(INVOKE, value), problem };
  }
  const checked = await checkCall(name, invoked.value, pinned, how);
  return { ...told(name, invoked.value), ...checked, via: 'catalog' };
}

function told(name: string, value: JsonObject): ReadCall {
  const canonical = canonicalJson(value);
  return { name, canonical, digest: sha256Hex(canonical) };
}

/** Judged by what the model was told: the pinned definition, whatever this worker has by now. */
async function checkCall(
  name: string,
  value: JsonObject,
  pinned: PinnedAgent,
  { givenUp }: Reading,
): Promise<Pick<AskedCall, 'problem' | 'summary'>> {
  const { definition, tools } = pinned;
  if (asksCatalog(definition, { name })) return checkQuestion(name, value, pinned);
  const known = definition.tools.find((tool) => tool.name === name);
  if (known === undefined) return { problem: missing(name, pinned) };
  if (givenUp && isSlowTool(known, pinned)) {
    const message = `The arguments of ${name} could not be checked: ${CHECK_GIVEN_UP}.`;
    return { problem: { type: 'invalid_arguments', message } };
  }
  const tool = unchanged(known, tools.get(name));
  const checked = await checkArguments(tool ?? { name, input: pinnedInput(known) }, value);
  if (!checked.ok) return { problem: checked.problem };
  const summary = tool && (await describeCall(tool, checked.value));
  return summary === undefined ? {} : { summary };
}

/** The workflow answers it, but for a tool that there is not: which ones are near takes time to find out. */
function checkQuestion(
  name: string,
  value: JsonObject,
  pinned: PinnedAgent,
): Pick<AskedCall, 'problem'> {
  const { definition } = pinned;
  const wanted = name === SCHEMA ? nameAsked(value) : undefined;
  const isMissing = wanted !== undefined && !definition.tools.some((tool) => tool.name === wanted);
  if (isMissing) return { problem: missing(wanted, pinned) };
  const answer = answerQuestion(definition, name, value);
  return answer.ok ? {} : { problem: { type: 'invalid_arguments', message: answer.message } };
}

/** So many of a catalog could have been meant. */
const NEAREST = 5;

/** Names of tools, the nearest first. */
function missing(name: string, { definition }: PinnedAgent): CallProblem {
  const names = definition.tools.map((tool) => tool.name);
  if (!hasCatalog(definition)) return unknownTool(name, names);
  return unknownTool(name, names, { atMost: NEAREST, hint: ` ${DISCOVER} lists them.` });
}
