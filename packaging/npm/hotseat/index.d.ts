/// <reference path="./hotseat.d.ts" />
export * from "hotseat";
