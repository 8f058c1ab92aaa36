"""L007 input-scale, L008 input-defect, L009 train-validation-overlap, L015 preprocessing-leak."""

MESSAGES: dict[str, str] = {
    "the batch holds no tensors": "批次中沒有張量",
    "NaN and infinite elements in the tensors given to the model and its loss.": (
        "交給模型及其損失的張量中，NaN 與無限大元素的個數。"
    ),
    "RMS of what the first layer with weights is given.": "第一個有權重的層所收到的輸入的 RMS。",
    "The network is given numbers that are far from zero mean and unit size, or of unlike sizes.": (
        "網路收到的數遠離零平均與單位大小，或各特徵大小懸殊。"
    ),
    "the numbers that `{module}` is given are of an unsuitable scale: {parts}": (
        "`{module}` 收到的數的尺度不合適：{parts}"
    ),
    "they run from {low:.4g} to {high:.4g} with an RMS of {rms:.3g}": (
        "它們從 {low:.4g} 到 {high:.4g}，RMS 為 {rms:.3g}"
    ),
    "their mean {mean:.4g} is {times:.0f} standard deviations from 0": (
        "其平均 {mean:.4g} 距離 0 有 {times:.0f} 個標準差"
    ),
    "feature {feature} of {features} has {times:.0f} times the RMS of the median one": (
        "{features} 個特徵中的第 {feature} 個，其 RMS 是中位數的 {times:.0f} 倍"
    ),
    "The input is not brought to zero mean and unit size.": "輸入沒有標準化為零平均與單位大小。",
    "x = (x - mean) / std  # of each feature, over the training split": (
        "x = (x - mean) / std  # 對每個特徵，以訓練資料計算"
    ),
    "a normalization right behind the first layer": "緊接在第一層之後的正規化",
    "{count} elements of {names} are NaN or infinite": "{names} 中有 {count} 個元素是 NaN 或無限大",
    "the batch": "批次",
    "Missing values, or a division by zero, reach the batch.": "缺失值或除以零的結果進入了批次。",
    "assert x.isfinite().all()  # and fill or drop what is missing before training": (
        "assert x.isfinite().all()  # 並在訓練前補上或捨棄缺失的部分"
    ),
    "of the {samples} samples of the batch only {distinct} differ": (
        "批次的 {samples} 個樣本中只有 {distinct} 個不同"
    ),
    "The dataset or the sampler gives the same sample again and again.": (
        "資料集或取樣器一再給出同一個樣本。"
    ),
    "print(torch.unique(x, dim=0).shape, x.shape)  # and look at `__getitem__`": (
        "print(torch.unique(x, dim=0).shape, x.shape)  # 並檢查 `__getitem__`"
    ),
    "{fraction:.0%} of the {features} features are the same in all samples of the batch": (
        "{features} 個特徵中有 {fraction:.0%} 在批次的所有樣本中都相同"
    ),
    "They tell no sample from another.": "它們無法區分任何兩個樣本。",
    "Leave them out, or look whether the data were read as they should be.": (
        "請去掉它們，或檢查資料是否正確讀入。"
    ),
    "no loader besides that of training is visible": "除了訓練用的以外，看不到其他資料載入器",
    "the training data cannot be read by place, or change each time": (
        "訓練資料無法依位置讀取，或每次讀取都不同"
    ),
    "the other data cannot be read by place, or change each time": (
        "其他資料無法依位置讀取，或每次讀取都不同"
    ),
    "Fraction of a data set that is in the training set, too.": "資料集中同時也在訓練集裡的比例。",
    "Samples of a validation or test set are in the training set, too.": (
        "驗證集或測試集的樣本同時也在訓練集裡。"
    ),
    "{share:.1%} of {samples} samples of `{loader}` are in the training data": (
        "`{loader}` 的 {samples} 個樣本中有 {share:.1%} 在訓練資料裡"
    ),
    "Both loaders are made of the same data set.": "兩個載入器用的是同一個資料集。",
    "The data were split after copies were made, or twice at random.": (
        "資料在複製之後才分割，或隨機分割了兩次。"
    ),
    "Split once, by index, before anything else is done to the data.": (
        "請在對資料做任何處理之前，依索引分割一次。"
    ),
    "copies that are natural to the data": "資料本身就有的重複",
    "How many times nearer to mean 0 and deviation 1 training and other data are together than "
    "training alone.": (
        "訓練資料與其他資料合在一起，比單獨的訓練資料更接近平均 0 與標準差 1 的倍數。"
    ),
    "The data were standardized with mean and deviation of training and validation together.": (
        "資料以訓練與驗證合在一起的平均與標準差作了標準化。"
    ),
    "the training data and `{loader}` together have mean 0 and deviation 1, those of training "
    "alone are {times:.0f} times as far off": (
        "訓練資料與 `{loader}` 合在一起的平均為 0、標準差為 1，而單獨的訓練資料的偏離是其 "
        "{times:.0f} 倍"
    ),
    "Mean and deviation were taken before the data were split.": (
        "平均與標準差是在資料分割之前計算的。"
    ),
    "mean, std = train.mean(0), train.std(0)  # of the training split alone": (
        "mean, std = train.mean(0), train.std(0)  # 只用訓練資料"
    ),
    "a mean that is near 0 by chance": "碰巧接近 0 的平均",
}
