export type { ProvidedContext } from 'vitest';

declare module 'vitest' {
  /** The values that `global-setup.ts` provides to the tests; read them with `inject`. */
  export interface ProvidedContext {
    /** `host:port` of the Temporal server that all tests of this run share. */
    readonly temporalAddress: string;
    /** Path of the Temporal CLI. */
    readonly temporalCli: string;
    /** Path of the file that holds the bundled workflow code of the sources. */
    readonly workflowBundle: string;
  }
}
