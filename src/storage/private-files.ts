/** Modes of all files in PERDURE_HOME, which hold conversations in plain text. */
export const PRIVATE = { file: 0o600, folder: 0o700 } as const;
