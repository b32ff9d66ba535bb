// Settings of the page, kept by the browser, and links to the editor.

const stored = {
  get(key) {
    try { return localStorage.getItem(key); } catch { return null; }
  },
  set(key, of) {
    // A page without a place of its own keeps nothing.
    try { if (of === null) localStorage.removeItem(key); else localStorage.setItem(key, of); } catch { /* not kept */ }
  },
};

const EDITORS = {
  vscode: ['VS Code', 'vscode://file{file}:{line}:{column}'],
  cursor: ['Cursor', 'cursor://file{file}:{line}:{column}'],
  zed: ['Zed', 'zed://file{file}:{line}:{column}'],
  idea: ['JetBrains', 'idea://open?file={file}&line={line}&column={column}'],
  none: ['no links', ''],
};

// Returns the link template of a name or a template. Schemes that run code are refused.
function editorTemplate(named) {
  if (EDITORS[named]) return EDITORS[named][1];
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(named || '')?.[1].toLowerCase();
  return scheme && !['javascript', 'data', 'vbscript'].includes(scheme) && named.includes('{file}') ? named : null;
}

// The editor of this page, of the server, or the default.
function chosenEditor(source) {
  const named = stored.get('hotseat-editor') ?? source.editor ?? 'vscode';
  return editorTemplate(named) === null ? 'vscode' : named;
}

// Returns the folder that the names of files are relative to. A report lies where its name says, seen from there.
function projectFolder(source) {
  const own = stored.get('hotseat-folder');
  if (own) return own;
  if (source.run?.folder) return source.run.folder;
  const name = (source.run?.metadata?.output_file || '').replaceAll('\\', '/').replace(/^\.\//, '');
  const path = decodeURIComponent(location.pathname);
  return location.protocol === 'file:' && name && path.endsWith(`/${name}`) ? path.slice(0, -name.length - 1) || '/' : null;
}

// Returns the link that opens a file in the editor, or null.
function editorLink(source, { file, line, column }) {
  const template = editorTemplate(chosenEditor(source));
  const isWhole = /^(\/|[A-Za-z]:[\\/])/.test(file || '');
  const folder = isWhole ? '' : projectFolder(source);
  if (!template || !file || folder === null) return null;
  const path = `${isWhole ? '' : `${folder.replace(/[\\/]+$/, '')}/`}${file}`.replaceAll('\\', '/');
  const written = path.replace(/^(?!\/)/, '/').split('/').map(encodeURIComponent).join('/').replace(/^\/([A-Za-z])%3A\//, '/$1:/');
  return template.replaceAll('{file}', () => written).replaceAll('{line}', String(line || 1)).replaceAll('{column}', String(column || 1));
}

// Dialog with the settings. `changed` draws the page again.
function settingsDialog(source, changed) {
  const link = h('input', { type: 'text', name: 'link', placeholder: 'editor://open?file={file}&line={line}', 'aria-label': 'Link of the editor', spellcheck: 'false' });
  const folder = h('input', { type: 'text', name: 'folder', spellcheck: 'false' });
  const wrong = h('p.bad', { role: 'alert' });
  const editor = h('select', { name: 'editor', onchange: () => { link.hidden = editor.value !== 'other'; } },
    Object.entries(EDITORS).map(([name, [label]]) => h('option', { value: name }, label)), h('option', { value: 'other' }, 'another editor'));
  const save = () => {
    const named = editor.value === 'other' ? link.value.trim() : editor.value;
    if (editorTemplate(named) === null) {
      fill(wrong, 'A link needs a scheme and {file}: editor://open?file={file}&line={line}');
      return;
    }
    stored.set('hotseat-editor', named);
    stored.set('hotseat-folder', folder.value.trim() || null);
    dialog.close();
    changed();
  };
  const dialog = h('dialog.help.settings', { 'aria-label': 'Settings' }, h('h2', {}, 'Settings'),
    h('form', { onsubmit: (event) => { event.preventDefault(); save(); } },
      h('label', {}, 'Files open in', editor), link,
      h('label', {}, 'Folder of the project', folder), wrong,
      h('p', {}, h('button', { type: 'submit' }, 'Save'), ' ', h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'))));
  return {
    dialog,
    show() {
      const named = chosenEditor(source);
      editor.value = EDITORS[named] ? named : 'other';
      link.value = EDITORS[named] ? '' : named;
      link.hidden = editor.value !== 'other';
      folder.value = projectFolder(source) || '';
      fill(wrong);
      dialog.showModal();
    },
  };
}
