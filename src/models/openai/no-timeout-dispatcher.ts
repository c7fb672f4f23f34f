import { isObject } from '../../core/json.js';

type Dispatcher = NonNullable<RequestInit['dispatcher']>;

/** Where Node's own `fetch`, and whoever replaces its connections (a proxy, say), keep them. */
const GLOBAL_DISPATCHER = Symbol.for('undici.globalDispatcher.1');

/** All that `fetch` uses of one. */
function isDispatcher(value: unknown): value is Dispatcher {
  return isObject(value) && typeof value['dispatch'] === 'function';
}

function globalDispatcher(): Dispatcher | undefined {
  // Node puts it there when `fetch` or its kin are first touched.
  void globalThis.Response;
  const dispatcher: unknown = Reflect.get(globalThis, GLOBAL_DISPATCHER);
  return isDispatcher(dispatcher) ? dispatcher : undefined;
}

/**
 * Node's `fetch` gives up when headers take 300 s or a body is silent as long: a model that thinks
 * for longer would be cut off on every attempt, at full price. This sends requests by the same
 * connections without those two clocks; the caller keeps its own. Undefined where a Node version
 * keeps its connections elsewhere: its limits hold then.
 */
export function patientDispatcher(): Dispatcher | undefined {
  const shared = globalDispatcher();
  if (shared === undefined) return undefined;
  const dispatch: Dispatcher['dispatch'] = (options, handler) =>
    // Looked up again: a proxy may have been set since.
    (globalDispatcher() ?? shared).dispatch(
      { ...options, headersTimeout: 0, bodyTimeout: 0 },
      handler,
    );
  const patient: unknown = { dispatch };
  return isDispatcher(patient) ? patient : undefined;
}
