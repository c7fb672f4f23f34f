import { LIMIT_NAMES, type LimitName, type LimitSet } from '../../core/definition/definition.js';
import { limitAmount, limitWord } from '../../core/requests/limit-words.js';
import { leftForCall } from '../../core/rules/limit-text.js';
import { usedOf } from '../../core/rules/limits.js';
import type { RunState } from '../../core/state/state.js';
import { actorText } from '../../core/state/summaries.js';
import type { Outcome } from '../../core/transcript/outcome.js';
import type { Projection } from '../../history/projection.js';
import { nodeToFork } from './failed-node.js';
import { type Place, nextCommandAbout } from './next-command.js';

interface StoppedRun {
  readonly id: string;
  readonly view: Projection;
}

/** A limit that a turn has reached, which may be that of the whole run. */
interface ReachedLimit {
  readonly name: LimitName;
  readonly scope: 'turn' | 'run';
  readonly limit: number;
  readonly used: number;
}

/**
 * Returns the line about the limit that has stopped a turn: its value, where it comes from, and a command
 * that goes on and works now. Null if no limit has stopped it.
 */
export function limitLine(place: Place, run: StoppedRun, outcome: Outcome): string | null {
  const { view, id } = run;
  const { state } = view;
  if (state === null || outcome.status !== 'stopped') return null;
  const reached = reachedLimit(state, outcome);
  if (reached === null) return null;
  const { name, scope, limit, used } = reached;
  const word = `${scope === 'run' ? 'run.' : ''}${limitWord(name)}`;
  const whole = scope === 'run' ? 'the whole run' : 'the turn';
  const amounts = `${limitAmount(name, used)} of ${limitAmount(name, limit)} used by ${whole}`;
  const short = leftForCall(state, name) === null ? '' : ', too little for the next model call';
  return `limit ${word}: ${amounts}${short}; ${sourceOf(view, state, reached)}. ${goOn(place, { id, state, isOver: isOver(view) }, reached)}`;
}

function isOver({ ended, state }: Projection): boolean {
  return ended !== null || state?.open !== true;
}

/** Returns the limit; that of the whole run if there is less left of it. */
function reachedLimit(state: RunState, { reason }: Outcome): ReachedLimit | null {
  const name = LIMIT_NAMES.find((one) => one === reason);
  if (name === undefined || name === 'depth') return null;
  const at = Math.max(state.startedAt, ...state.transcript.messages.map((message) => message.at));
  const found = (['run', 'turn'] as const).flatMap((scope): readonly ReachedLimit[] => {
    const limit = state.config.limits[scope][name] ?? null;
    const used = usedOf(name, { state, scope, at });
    return limit === null ? [] : [{ name, scope, limit, used }];
  });
  const [first, ...others] = found;
  const second = others[0];
  if (first === undefined || second === undefined) return first ?? null;
  return first.limit - first.used <= second.limit - second.used ? first : second;
}

/** Returns who has set a limit, as far as the run knows. */
function sourceOf({ input }: Projection, state: RunState, { name, scope }: ReachedLimit): string {
  const { decisions = [], config } = state;
  const set = decisions.findLast(({ what, as }) => what === 'setLimits' || as === 'raise');
  const given = scopeOf(input?.limits, scope)?.[name];
  const own = scopeOf(config.definition.limits, scope)?.[name];
  const now = config.limits[scope][name];
  if (set !== undefined && now !== given && now !== own) return `set by ${actorText(set)}`;
  if (given !== undefined && given !== null) return 'set when the run was started';
  if (own !== undefined && own !== null) {
    return `set by agent ${config.definition.name}`;
  }
  return scope === 'turn' ? 'the default' : 'set by the caller of the run';
}

function scopeOf(
  limits: (LimitSet & { readonly run?: LimitSet }) | undefined,
  scope: ReachedLimit['scope'],
): LimitSet | undefined {
  return scope === 'run' ? limits?.run : limits;
}

interface GoingOn {
  readonly id: string;
  readonly state: RunState;
  readonly isOver: boolean;
}

/** Returns the sentence with the command that goes on. */
function goOn(place: Place, { id, state, isOver: over }: GoingOn, reached: ReachedLimit): string {
  const { name, scope, limit } = reached;
  if (over) {
    const node = nodeToFork(state, state.graph?.at?.node);
    const where = node === undefined ? ['MESSAGE'] : ['--node', node];
    const fork = nextCommandAbout(place, ['fork', id, ...where]);
    return `Go on in a new run, which counts anew, with: ${fork}`;
  }
  const word = `${scope === 'run' ? 'run.' : ''}${limitWord(name)}`;
  const more = `${word}=${name === 'wallMs' ? '10m' : limit}`;
  const words = ['limits', id, '--add', more];
  const raise = nextCommandAbout(place, words);
  return scope === 'run'
    ? `Raise it before the next message with: ${raise}`
    : `The next message may use as much again; raise the limit of each turn with: ${raise}`;
}
