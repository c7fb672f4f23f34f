import { type NodeVisit, nodeVisitProblem } from '../definition/graph-definition.js';
import { isObject } from '../text/json.js';
import { show } from '../text/text.js';

/** The run whose messages a new run begins with. */
export interface ForkInput {
  /** Workflow id of the other run. */
  readonly run: string;
  /**
   * Number of the first message that is not copied; default: all are copied. A step whose calls
   * would lose their results is not copied either. Or a node of the other run's graph: the new run
   * begins its first turn there, with the state and the messages at the beginning of that visit.
   */
  readonly at?: number | NodeVisit;
  /**
   * Run id of the first segment of the other run, because its workflow id may have been reused.
   * Default: the newest run.
   */
  readonly runId?: string;
}

/** Returns what is wrong with `fork` in an input, or null. */
export function checkFork(value: unknown): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) {
    return `fork: expected an object, got ${show(value)}; give for example {"run": "id"}`;
  }
  const unknown = Object.keys(value).find(
    (key) => key !== 'run' && key !== 'at' && key !== 'runId',
  );
  if (unknown !== undefined)
    return `fork.${unknown}: expected one of run, at, runId; correct its name, or remove it`;
  const { run, at, runId } = value;
  if (typeof run !== 'string' || run === '') {
    return `fork.run: expected the id of the run to fork, got ${show(run)}`;
  }
  if (runId !== undefined && (typeof runId !== 'string' || runId === '')) {
    return `fork.runId: expected the run id of the first segment, got ${show(runId)}; omit it`;
  }
  if (isObject(at)) return nodeVisitProblem(at, 'fork.at');
  if (at === undefined || (Number.isInteger(at) && Number(at) >= 1)) return null;
  return `fork.at: expected the number of the first message not to copy, from 1, got ${show(at)}`;
}

/** Whether the `fork` of an input names a node: the run's first turn then needs no message. */
export function forksAtNode(fork: unknown): boolean {
  return isObject(fork) && isObject(fork['at']);
}
