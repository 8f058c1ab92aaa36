"""N003 bn-small-group."""

MESSAGES: dict[str, str] = {
    "{layers} of {norms} normalization layers normalize by too few values: `{worst}` by {size:.0f} "
    "a channel (threshold {threshold:g}), and their variance is off by {noise:.0%} from batch to "
    "batch (median of {steps} measured steps)": (
        "{norms} 個正規化層中有 {layers} 個用來正規化的數值太少：`{worst}` 每個通道只有 "
        "{size:.0f} 個（門檻 {threshold:g}），其變異數在批次之間相差 {noise:.0%}"
        "（{steps} 個量測步的中位數）"
    ),
    "{layers} of {norms} normalization layers normalize by too few samples: in batches of "
    "{batch:.0f} the variance at `{worst}` is off by {noise:.0%} from batch to batch, as that of "
    "{size:.1f} independent values would be (threshold {threshold:g}; median of {steps} measured "
    "steps)": (
        "{norms} 個正規化層中有 {layers} 個用來正規化的樣本太少：批次大小為 {batch:.0f} 時，"
        "`{worst}` 的變異數在批次之間相差 {noise:.0%}，只相當於 {size:.1f} 個獨立數值"
        "（門檻 {threshold:g}；{steps} 個量測步的中位數）"
    ),
    "The variance of {size:.2g} independent values is uncertain by sqrt(2/(N - 1)), "
    "{expected:.0%}.": (
        "{size:.2g} 個獨立數值的變異數，其不確定性為 sqrt(2/(N - 1))，即 {expected:.0%}。"
    ),
    "# Batches of 32 or more (`DataLoader(..., batch_size=32, drop_last=True)`), or else normalize "
    "each\n"
    "# sample by itself, before the optimizer is built:\n"
    "for name, m in list({model}.named_modules()):\n"
    "    if isinstance(m, torch.nn.BatchNorm1d):\n"
    "        {model}.set_submodule(name, torch.nn.GroupNorm(1, m.num_features))": (
        "# 批次大小至少 32（`DataLoader(..., batch_size=32, drop_last=True)`）；\n"
        "# 否則在建立最佳化器之前，改為逐一樣本各自正規化：\n"
        "for name, m in list({model}.named_modules()):\n"
        "    if isinstance(m, torch.nn.BatchNorm1d):\n"
        "        {model}.set_submodule(name, torch.nn.GroupNorm(1, m.num_features))"
    ),
    "# Batches of 32 or more (`DataLoader(..., batch_size=32, drop_last=True)`), or else normalize "
    "each\n"
    "# sample by itself, before the optimizer is built:\n"
    "import math\n"
    "for name, m in list({model}.named_modules()):\n"
    "    if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):\n"
    "        groups = math.gcd(8, m.num_features)\n"
    "        {model}.set_submodule(name, torch.nn.GroupNorm(groups, m.num_features))": (
        "# 批次大小至少 32（`DataLoader(..., batch_size=32, drop_last=True)`）；\n"
        "# 否則在建立最佳化器之前，改為逐一樣本各自正規化：\n"
        "import math\n"
        "for name, m in list({model}.named_modules()):\n"
        "    if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):\n"
        "        groups = math.gcd(8, m.num_features)\n"
        "        {model}.set_submodule(name, torch.nn.GroupNorm(groups, m.num_features))"
    ),
    "a small last batch": "最後一個不足的小批次",
    "layers in eval mode": "處於 eval 模式的層",
    "statistics that have not settled": "尚未穩定的統計量",
}
