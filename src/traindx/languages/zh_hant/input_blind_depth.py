"""F001 input-blind-depth."""

MESSAGES: dict[str, str] = {
    "batches of {size:.0f} samples are too small to compare samples (at least {least})": (
        "{size:.0f} 個樣本的批次太小，無法比較樣本（至少 {least} 個）"
    ),
    "the output of {model} hardly depends on its input: {start:.2g} of the mean square differs "
    "between samples at `{first}`, {share:.2g} at `{blind}` and at most {most:.2g} at every output "
    "from there to the end ({behind} in all; threshold {threshold:.1g})": (
        "{model} 的輸出幾乎不隨輸入改變：均方值中因樣本而異的比例，在 `{first}` 為 {start:.2g}，"
        "在 `{blind}` 為 {share:.2g}，自該處到最後的每個輸出都不超過 {most:.2g}"
        "（共 {behind} 個；門檻 {threshold:.1g}）"
    ),
    "Every layer passes on less of what differs between samples than it got.": (
        "每一層傳下去的樣本差異，都比它收到的少。"
    ),
    "# Before the optimizer is built; with ReLU, not sigmoid or tanh, between the layers:\n"
    "for m in {model}.modules():\n"
    "    if isinstance(m, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)):\n"
    '        torch.nn.init.kaiming_normal_(m.weight, nonlinearity="relu")\n'
    "        if m.bias is not None:\n"
    "            torch.nn.init.zeros_(m.bias)\n"
    "# Or add skip connections or normalization layers.": (
        "# 在建立最佳化器之前；層與層之間使用 ReLU，而非 sigmoid 或 tanh：\n"
        "for m in {model}.modules():\n"
        "    if isinstance(m, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, "
        "torch.nn.Conv3d)):\n"
        '        torch.nn.init.kaiming_normal_(m.weight, nonlinearity="relu")\n'
        "        if m.bias is not None:\n"
        "            torch.nn.init.zeros_(m.bias)\n"
        "# 或加入跳接或正規化層。"
    ),
    "inputs that are all alike": "彼此都相同的輸入",
    "an output layer that starts at zero": "初始為 0 的輸出層",
    "branches that something leads past": "另有路徑繞過的分支",
}
