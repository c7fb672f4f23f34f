import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { Config } from '../config.js';
import { InputError } from '../core/errors.js';
import { isObject, parseJson, textField } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { ModelEntry } from '../models/model-entry.js';
import { withCalled } from '../agents/agent-definition.js';
import { likelyMeant } from '../validation/near-names.js';
import { assertOptionNames } from '../validation/option-names.js';
import { type Watch, observeAgents, observeModel } from './observe.js';

/** The worker dies at a certain place. `call` and `step` count from 1 in the whole run. */
export type Fault =
  | {
      readonly at: 'before-effect' | 'after-effect';
      readonly call: number;
      readonly kill: true;
    }
  | { readonly at: 'before-reply' | 'after-reply'; readonly step: number; readonly kill: true };

const FAULTS = {
  'before-effect': 'call',
  'after-effect': 'call',
  'before-reply': 'step',
  'after-reply': 'step',
};

/** Throws an `InputError` for a fault that cannot happen. */
export function assertFaults(faults: readonly unknown[]): void {
  for (const fault of faults) {
    const place = isObject(fault) ? textField(fault, 'at') : '';
    const count = Object.entries(FAULTS).find(([name]) => name === place)?.[1];
    const number = isObject(fault) && count !== undefined ? fault[count] : undefined;
    if (!Number.isInteger(number) || Number(number) < 1) {
      const form = '{ at: "after-effect", call: 1, kill: true }, or before-reply with step';
      const meant = count === undefined ? likelyMeant(place, Object.keys(FAULTS)) : undefined;
      const fix = meant === undefined ? '' : `; did you mean ${meant}?`;
      throw new InputError(`faults: expected a fault such as ${form}, got ${show(fault)}${fix}`);
    }
  }
}

/** Options of `withFaults`. */
export interface FaultOptions {
  /**
   * A file in which the processes count calls and steps, and the faults that have happened. Without
   * it, each process counts for itself.
   */
  readonly file?: string;
}

/** What one process has to know of the others. */
type Noted = { readonly call: string } | { readonly step: number } | { readonly fired: number };

/**
 * Returns the configuration of a worker that dies by SIGKILL at these places, in the form of `faults` of
 * `runInMemory`: for tests with a server. Start the worker as a process of its own, and again after
 * its death. Calls of tools and of functions of graphs count, in the order in which they begin, and the
 * calls of the models in `models` of the configuration. Throws an `InputError` for a fault that cannot
 * happen, and for an agent with MCP servers, whose calls are not counted.
 *
 * @example
 * ```ts
 * import { createWorker, defineAgent, defineConfig } from 'perdure';
 * import { withFaults } from 'perdure/testing';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'local' });
 * const config = defineConfig({
 *   agents: [clerk],
 *   models: { local: { baseUrl: 'http://127.0.0.1:11434/v1', model: 'qwen3' } },
 * });
 * const faults = [{ at: 'after-effect', call: 2, kill: true }] as const;
 * const worker = await createWorker({ config: withFaults(config, faults, { file: 'faults.jsonl' }) });
 * await worker.stopped;
 * ```
 */
export function withFaults(
  config: Config,
  faults: readonly Fault[],
  options: FaultOptions = {},
): Config {
  assertOptionNames<FaultOptions>(options, { file: true });
  const { file } = options;
  assertFaults(faults);
  const remote = withCalled(config.agents).find(({ mcp }) => mcp.length > 0);
  if (remote !== undefined) {
    throw new InputError(
      `agent "${remote.name}": mcp: expected no MCP servers, got ${remote.mcp.length}; their calls are not counted`,
    );
  }
  const noted = file !== undefined && existsSync(file) ? readNotes(file) : [];
  const calls = noted.flatMap((one) => ('call' in one ? [one.call] : []));
  const fired = new Set(noted.flatMap((one) => ('fired' in one ? [one.fired] : [])));
  let steps = noted.filter((one) => 'step' in one).length;
  const note = (one: Noted): void => {
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(one)}\n`);
  };
  const dieAt = (at: Fault['at'], number: number): void => {
    const due = faults.findIndex(
      (fault, index) =>
        !fired.has(index) &&
        fault.at === at &&
        ('call' in fault ? fault.call : fault.step) === number,
    );
    if (due < 0) return;
    fired.add(due);
    note({ fired: due });
    process.kill(process.pid, 'SIGKILL');
    // The signal may arrive a moment later, and nothing may happen until then.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  };
  const numberOf = (call: string): number => calls.indexOf(call) + 1;
  const watch: Watch = {
    async beforeCall({ call }) {
      if (!calls.includes(call)) {
        calls.push(call);
        note({ call });
      }
      dieAt('before-effect', numberOf(call));
    },
    afterCall: (call) => dieAt('after-effect', numberOf(call)),
    async beforeStep() {
      steps += 1;
      note({ step: steps });
      dieAt('before-reply', steps);
      return steps;
    },
    afterStep: (number) => dieAt('after-reply', number),
  };
  const observed = { modelRequests: [], effects: [] };
  const models = Object.entries(config.models ?? {}).map(([name, model]): [string, ModelEntry] => [
    name,
    'call' in model ? observeModel(model, observed, watch) : model,
  ]);
  const agents = observeAgents(config.agents, observed, watch);
  return { ...config, agents, models: Object.fromEntries(models) };
}

function readNotes(file: string): readonly Noted[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line): readonly Noted[] => {
      const note = parseJson(line);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this module has written it
      return isObject(note) ? [note as Noted] : [];
    });
}
