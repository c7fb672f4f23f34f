/** Modes of everything in PERDURE_HOME: it holds every conversation in clear text. */
export const PRIVATE = { file: 0o600, folder: 0o700 } as const;
