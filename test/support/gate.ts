import { createGate, type Barrier } from '../../src/testing/barrier.js';

/** A gate that a test holds shut, whatever becomes of those who wait at it. */
export interface Gate extends Barrier {
  wait(): Promise<void>;
}

export function gate(): Gate {
  const made = createGate();
  const { signal } = new AbortController();
  return Object.assign(made.barrier, { wait: () => made.wait(signal) });
}
