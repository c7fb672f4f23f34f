declare module 's3rver' {
  /** A function of Koa, on which the server is built. */
  export type S3Middleware = (
    context: {
      readonly method: string;
      readonly path: string;
      status: number;
      type: string;
      body: string;
      get(header: string): string;
    },
    next: () => Promise<void>,
  ) => Promise<void>;
  /** The part of the server that the tests use. */
  export default class S3rver {
    constructor(options: {
      readonly address: string;
      readonly port: number;
      readonly silent: boolean;
      readonly directory: string;
      readonly configureBuckets: readonly { readonly name: string }[];
    });
    readonly middleware: S3Middleware[];
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}
