// Prints what TypeScript's own parser says is defined in a tree: name, path and line, parted by tabs.
// Used as `node typescript_definitions.cjs COMPILER FOLDER`.
const fs = require("fs");
const path = require("path");

const [compiler, folder] = process.argv.slice(2);
const ts = require(compiler);
const kinds = new Set([
  ts.SyntaxKind.FunctionDeclaration,
  ts.SyntaxKind.ClassDeclaration,
  ts.SyntaxKind.InterfaceDeclaration,
  ts.SyntaxKind.TypeAliasDeclaration,
  ts.SyntaxKind.EnumDeclaration,
  ts.SyntaxKind.ModuleDeclaration,
  ts.SyntaxKind.MethodDeclaration,
  ts.SyntaxKind.MethodSignature,
]);

function defines(node) {
  if (kinds.has(node.kind)) return true;
  const value = ts.isVariableDeclaration(node) && node.initializer; // a function by another spelling
  return Boolean(value) && (ts.isArrowFunction(value) || ts.isFunctionExpression(value));
}

function visit(node, source, name) {
  if (defines(node) && node.name && ts.isIdentifier(node.name)) {
    const { line } = source.getLineAndCharacterOfPosition(node.name.getStart(source));
    console.log(`${node.name.text}\t${name}\t${line + 1}`);
  }
  ts.forEachChild(node, (child) => visit(child, source, name));
}

for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.[mc]?tsx?$/.test(entry.name)) continue;
  const file = path.join(entry.parentPath ?? entry.path, entry.name);
  const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.Latest);
  visit(source, source, path.relative(folder, file));
}
