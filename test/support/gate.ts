import { createGate, type Barrier } from '../../src/testing/play.js';

/** A gate that a test keeps shut, even if those who wait at it give up. */
export interface Gate extends Barrier {
  wait(): Promise<void>;
}

export function gate(): Gate {
  const made = createGate();
  const { signal } = new AbortController();
  return Object.assign(made.barrier, { wait: () => made.wait(signal) });
}
