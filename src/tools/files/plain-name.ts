/** Format characters and what fonts leave out; a name with them looks like the name without. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Control}\p{Format}]/gu;
/** File systems of Windows cut these off the end of a name. */
const TRAILING = /[.\p{White_Space}]+$/u;

/** Without the differences of letters that a file system may pass over. */
export function folded(text: string): string {
  // Upper case first: it unites letters that have several lower forms.
  return text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC');
}

/**
 * The form in which the name of a file or folder is compared with guarded names: what a file system
 * that folds case, normalizes, or ignores characters may take it for. Such a system may take
 * `PACKAGE.JSON`, `package.json.`, and `package\u200b.json` for one file.
 */
export function plainName(name: string): string {
  const composed = name.normalize('NFKC').replace(INVISIBLE, '');
  // A colon begins the name of a stream within the file on NTFS; on a drive it follows the letter.
  const [file = ''] = composed.split(':');
  const whole = composed.startsWith(':') ? composed : file;
  return folded(whole).trim().replace(TRAILING, '');
}
